"""Runs that are given as much memory as their estimate says, and runs that are given less.

python -m benchmarks.cap [--count 20] [--measured build/measured.json]

Of the configurations that peaked over 300 MB, with one inter-op thread: capped at what the estimate says the pool needs
and 3 %, a run has to complete; capped at 95 % of the predicted peak it has to run out, and the tensor that failed, or
one of its size, has to be among those that the estimate has alive at the peak.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

import tensorflow as tf
from rich.table import Table

from benchmarks.about import about, console
from benchmarks.configuration import Configuration, by_turns
from benchmarks.estimate import estimate_of
from benchmarks.measure import prepared
from benchmarks.models import CONFIGURATIONS
from benchmarks.processes import ONE, ProcessError, in_process
from benchmarks.rows import peaks_of
from benchmarks.store import Store
from tensorboard_plugin_memest.estimation.allocator import rounded
from tensorboard_plugin_memest.memory.units import format_bytes

LARGE = 300 * 10**6
ROOM = 1.03
SHORT = 0.95
STEPS = 10
_MIB = 2**20

_FAILED = re.compile(r"OOM when allocating tensor with shape\[([\d,]*)\] and type (\w+)")
_COMPLETED = {"end": "completed", "phase": None, "shape": None, "dtype": None, "bytes": None}

# Names of types in C++, as the error gives them.
_SIZES = {
    "float": 4,
    "double": 8,
    "half": 2,
    "bfloat16": 2,
    "Eigen::half": 2,
    "int": 4,
    "int32": 4,
    "int64": 8,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--match", default="", help='regular expression on "family: name"')
    parser.add_argument("--measured", type=Path, default=Path("build/measured.json"), help="what tells the large ones")
    parser.add_argument("--json", type=Path, default=Path("build/cap.json"))
    args = parser.parse_args()
    out = console()
    rows = []
    for configuration in _chosen(Store(args.measured), args.match, args.count):
        try:
            rows.append(_row(configuration))
        except ProcessError as error:
            out.print(f"{configuration.name}: {error}", style="red", highlight=False)
            continue
        out.print(f"[dim]{configuration.name}: {_in_words(rows[-1])}[/]", highlight=False)
    if not rows:
        out.print("No measured configuration peaked that high; run make benchmark-accuracy first.")
        return
    table = Table(title=f"Capped runs of {STEPS} steps, one inter-op thread")
    for title in (
        "configuration",
        "predicted peak",
        "pool",
        "with the pool and 3 %",
        "with 95 % of the peak",
        "failed",
    ):
        table.add_column(title)
    table.add_column("is alive at the peak")
    for row in rows:
        short = row["short"]
        table.add_row(
            row["name"],
            format_bytes(row["peak"]),
            format_bytes(row["pool"]),
            row["full"]["end"],
            short["end"],
            f"{short['shape']} {short['dtype']}, {short['phase']}" if short["shape"] is not None else "-",
            "yes" if short["alive"] else "no",
        )
    out.print(table)
    completed = sum(row["full"]["end"] == "completed" for row in rows)
    died = sum(row["short"]["end"] == "ran out" for row in rows)
    alive = sum(row["short"]["alive"] for row in rows)
    out.print(f"{completed} of {len(rows)} completed, {died} ran out when capped, {alive} failed at a predicted size.")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({**about(), "rows": rows}, indent=1))


def _chosen(store: Store, pattern: str, count: int) -> list[Configuration]:
    """Large configurations, one of each family after another."""
    large = []
    for one in CONFIGURATIONS.values():
        record = store.record(one, ONE)
        is_wanted = re.search(pattern, f"{one.family}: {one.name}") and record["processes"]
        if is_wanted and max(peaks_of(record)["step"]) > LARGE:
            large.append(one)
    return by_turns(large)[:count]


def _row(configuration: Configuration) -> dict[str, Any]:
    predicted = in_process(predict, configuration.name, threads=ONE)
    # What its data takes all the time comes on top.
    fed = in_process(fed_bytes, configuration.name, threads=ONE)
    full = _capped(configuration, ROOM * predicted["pool"] + fed)
    short = _capped(configuration, SHORT * predicted["peak"] + fed)
    sizes = set(predicted["sizes"].get(short["phase"], ()))
    short["alive"] = short["bytes"] is not None and rounded(short["bytes"]) in sizes
    return {
        "name": configuration.name,
        **{key: predicted[key] for key in ("peak", "pool")},
        "full": full,
        "short": short,
    }


def _capped(configuration: Configuration, limit: float) -> dict[str, Any]:
    """How a run ends whose allocator may reserve `limit` bytes."""
    megabytes = math.ceil(limit / _MIB)
    environment = {"TF_CPU_BFC_MEM_LIMIT_IN_MB": str(megabytes)}
    try:
        ended: dict[str, Any] = in_process(train, configuration.name, threads=ONE, environment=environment)
    except ProcessError as error:
        # Some kernels use the scratch memory that they did not get.
        ended = {**_COMPLETED, "end": "crashed", "message": str(error)[-300:]}
    return {"limit": megabytes * _MIB, **ended}


def predict(name: str) -> dict[str, Any]:
    """What the estimate says: the highest peak, the pool, and for each phase the sizes of what is alive at its peak."""
    made = estimate_of(name)
    return {
        "peak": made.peak_bytes,
        "pool": max(phase.pool_bytes for phase in made.phases.values()),
        "sizes": {
            phase.name: sorted({rounded(item.requested_bytes) for item in phase.live_at_peak})
            for phase in made.phases.values()
        },
    }


def fed_bytes(name: str) -> int:
    """What the data of a configuration takes."""
    configuration = CONFIGURATIONS[name]
    _, fed = prepared(configuration, configuration.build())
    return fed


def train(name: str) -> dict[str, Any]:
    """Builds a model, trains it for some steps, and tells how that ended."""
    configuration = CONFIGURATIONS[name]
    phase = "build"
    try:
        model = configuration.build()
        step, _ = prepared(configuration, model)
        for number in range(STEPS):
            phase = "step" if number else "first_step"
            step()
    except tf.errors.ResourceExhaustedError as error:
        failed = _FAILED.search(error.message)
        shape = [int(size) for size in failed[1].split(",") if size] if failed else None
        size = _SIZES.get(failed[2]) if failed else None
        return {
            "end": "ran out",
            "phase": phase,
            "shape": shape,
            "dtype": failed[2] if failed else None,
            "bytes": math.prod(shape) * size if shape is not None and size else None,
            "message": error.message[:300],
        }
    return _COMPLETED


def _in_words(row: dict[str, Any]) -> str:
    short = row["short"]
    failed = f" in {short['phase']} at {short['shape']}, alive: {short['alive']}" if short["phase"] else ""
    return f"{row['full']['end']} with the pool, {short['end']} with less{failed}"


if __name__ == "__main__":
    main()
