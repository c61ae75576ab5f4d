"""What a profile of a million allocations and releases takes: to read, to show first, and to show again.

python -m benchmarks.profile [--events 1000000]

A deep model of small layers is trained under TensorFlow's profiler until there are so many memory events. The profile
is read and recorded by `memest.log_profile` in a process of its own; then a real `tensorboard` is asked over HTTP for
what the tab shows of it. Beside the seconds on the wall stands the time of the processor that the process took which
does the work: what else the machine does meanwhile adds less to it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.about import about, console
from benchmarks.processes import DEFAULT, in_process
from tensorboard_plugin_memest.memory.units import format_bytes
from tests.integration.http import ask, is_active, wait_for
from tests.server import tensorboard_process

# The goals, in seconds.
FIRST, LATER = 5.0, 0.2

LAYERS = 60
BATCH = 4
_TICKS = os.sysconf("SC_CLK_TCK")


def profiled(logdir: str, events: int) -> tuple[str, str]:
    """Trains until a profile has about so many memory events; records the model's estimate.

    Args:
        logdir: where profile and records go.
        events: how many allocations and releases.

    Returns:
        The profile's path, and the estimate as JSON.
    """
    import keras
    import tensorflow as tf

    import memest
    from tensorboard_plugin_memest.log.writer import RunWriter
    from tensorboard_plugin_memest.measure.profile import read_profile
    from tensorboard_plugin_memest.measure.profile_files import find_profiles

    layers = [keras.layers.Dense(8, activation="relu") for _ in range(LAYERS)]
    model = keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
    data = tf.data.Dataset.from_tensors((tf.ones((BATCH, 8)), tf.ones((BATCH, 1)))).repeat()

    def profile(where: str, steps: int) -> str:
        tf.profiler.experimental.start(where)
        model.fit(data, steps_per_epoch=steps, verbose=0)
        tf.profiler.experimental.stop()
        return find_profiles(where)[-1]

    model.fit(data, steps_per_epoch=1, verbose=0)
    with tempfile.TemporaryDirectory() as trial:
        (one,) = read_profile(profile(trial, 4))
    steps = -(-4 * events // len(one.timeline))
    path = profile(logdir, steps)
    estimate = memest.estimate(model, batch_size=BATCH)
    with RunWriter(logdir) as writer:
        writer.write_estimate(estimate)
    return path, estimate.to_json()


def read(path: str, logdir: str, estimate: str) -> dict[str, Any]:
    """Reads and records the profile.

    Returns:
        The number of its memory `events`, its `file_bytes`, the `seconds` that it took, the processor's `cpu_seconds`,
        and by how many `bytes` the process grew at most.
    """
    import memest
    from tensorboard_plugin_memest.memory.estimate import Estimate

    made = Estimate.from_json(estimate)
    before, started, cpu = _peak_bytes("self"), time.perf_counter(), time.process_time()
    (found,) = memest.log_profile(path, logdir, made)
    return {
        "events": len(found.timeline),
        "file_bytes": os.path.getsize(path),
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "bytes": _peak_bytes("self") - before,
    }


def asked(logdir: Path) -> dict[str, Any]:
    """How long the answers of a TensorBoard on `logdir` take, the first and later ones, and how large it gets."""
    before = set(_children())
    with tensorboard_process(logdir) as server:
        (process,) = set(_children()) - before
        wait_for(lambda: is_active(server), bool)
        name = wait_for(lambda: ask(server, "runs")["runs"], bool)[0]["name"]
        idle = _peak_bytes(process)
        first_cpu = _cpu_seconds(process)
        first = [_timed(partial(ask, server, "overview", run=name))]
        (profile,) = ask(server, "overview", run=name)["measured"]["profiles"]
        who = {"run": name, "id": profile["id"]}
        first.append(_timed(partial(ask, server, "profile", **who)))
        first.append(_timed(partial(ask, server, "moment", **who)))
        first_cpu = _cpu_seconds(process) - first_cpu
        curve = ask(server, "profile", **who)
        first_tick, last_tick = curve["extent"]
        chance = random.Random(0)
        later: dict[str, list[float]] = {"profile": [], "moment": [], "overview": []}
        cpu = _cpu_seconds(process)
        for _ in range(20):
            left, width = chance.random() * 0.9, last_tick - first_tick
            stretch = {"from": first_tick + round(left * width), "to": first_tick + round((left + 0.1) * width)}
            later["profile"].append(_timed(partial(ask, server, "profile", **who, **stretch)))
            at = chance.choice(curve["timeline"]["positions"])
            later["moment"].append(_timed(partial(ask, server, "moment", **who, at=at)))
            later["overview"].append(_timed(partial(ask, server, "overview", run=name)))
        return {
            "first_seconds": first,
            "first_cpu_seconds": first_cpu,
            "later_seconds": later,
            "later_cpu_seconds": (_cpu_seconds(process) - cpu) / 60,
            "bytes": _peak_bytes(process) - idle,
            "process_bytes": _peak_bytes(process),
        }


def _timed(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def _peak_bytes(process: str) -> int:
    """The most that a process has held of the host's memory."""
    (line,) = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])


def _cpu_seconds(process: str) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def main() -> None:
    """Measures, prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, default=Path("build/profile.json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        path, estimate = in_process(profiled, place, arguments.events, threads=DEFAULT)
        found = in_process(read, path, place, estimate, threads=DEFAULT)
        shown = asked(Path(place))
        records = sum(path.stat().st_size for path in Path(place).rglob("*tfevents*"))
    table = Table(title=f"A profile of {found['events']:,} memory events, {format_bytes(found['file_bytes'])}")
    for column in ("what", "seconds", "of the processor's", "goal"):
        table.add_column(column, justify="left" if column == "what" else "right")

    def row(what: str, seconds: float, cpu: float | None, goal: float | None = None) -> None:
        told = "" if cpu is None else f"{cpu:.2f}"
        table.add_row(what, f"{seconds:.2f}", told, "" if goal is None else f"{goal:g}")

    row("read and recorded, once", found["seconds"], found["cpu_seconds"])
    row("first answers: overview, curve and moment", sum(shown["first_seconds"]), shown["first_cpu_seconds"], FIRST)
    for route, seconds in shown["later_seconds"].items():
        row(f"later answers of {route}: median", statistics.median(seconds), None, LATER)
        row("  the longest of 20", max(seconds), None)
    table.add_row("", "", "", "")
    table.add_row("the reader's growth", format_bytes(found["bytes"]), "", "")
    table.add_row(
        "TensorBoard's growth, and all of it", format_bytes(shown["bytes"]), format_bytes(shown["process_bytes"]), ""
    )
    table.add_row("records", format_bytes(records), "", "")
    console().print(table)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({**about(), "read": found, "shown": shown, "record_bytes": records}, indent=1))


if __name__ == "__main__":
    main()
