"""Predicted against measured peaks of all modes and phases: graph, XLA and eager, from building to saving.

python -m benchmarks.modes [--mode graph,xla,eager] [--match PATTERN] [--count N] [--only measure|estimate]

Each configuration is built, trained, evaluated, asked for predictions and saved in fresh processes, under the CPU's BFC
allocator with oneDNN on and one inter-op thread, and estimated in another; a training loop outside Keras is trained. An
error is how far the estimate lies outside the range of the measured peaks, relative to the nearer end.
`benchmarks.accuracy` looks at more trainings in graph mode; this one at everything else. Measurements are kept, as
there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from rich.table import Table

from benchmarks.about import console
from benchmarks.configuration import Configuration
from benchmarks.errors import distance, summary
from benchmarks.loops import LOOPS, Loop
from benchmarks.measure_modes import (
    BATCHES_A_PASS,
    EAGER,
    GRAPH,
    MODES,
    PHASES,
    SAVED,
    STEPS,
    XLA,
    measure_loop,
    measure_mode,
    phases_of,
    predict_batch_size,
    step_in_mode,
    validation_batch_size,
)
from benchmarks.models import CONFIGURATIONS
from benchmarks.processes import ONE, in_process
from benchmarks.stages import chosen, parser_of, run_stages
from benchmarks.store import Record, Store
from tensorboard_plugin_memest.memory.units import format_bytes

# Less than a process may take: what XLA was not asked about is no row.
COMPILE_TIMEOUT_S = 540

# Processes a training is measured in: XLA repeats to the kilobyte.
PROCESSES = {GRAPH: 2, XLA: 1, EAGER: 2}


def main() -> None:
    args = _arguments()
    terminal = console()
    trained = chosen([*CONFIGURATIONS.values(), *LOOPS.values()], args.match)[: args.count]
    pairs = [(one, f"{ONE}, {mode}") for mode in args.mode.split(",") for one in trained]
    rows = run_stages(terminal, args, pairs, _measured, _row)
    if rows:
        terminal.print(_summaries(rows))
        terminal.print(_worst(rows, args.worst))


def _arguments() -> argparse.Namespace:
    parser = parser_of(__doc__, measured="build/modes-measured.json", result="build/modes.json", worst=20)
    parser.add_argument("--mode", default=",".join(MODES), help="modes, with commas between them")
    parser.add_argument("--count", type=int, default=30, help="how many trainings a mode, of every family in turn")
    return parser.parse_args()


def _mode_of(setting: str) -> str:
    return setting.rpartition(", ")[2]


def _measured(store: Store, trained: Configuration | Loop, setting: str) -> Iterator[tuple[Record, str]]:
    record, mode = store.record(trained, setting), _mode_of(setting)
    measure = measure_loop if isinstance(trained, Loop) else measure_mode
    while len(record["processes"]) < PROCESSES[mode]:
        made = in_process(measure, trained.name, mode, STEPS + len(record["processes"]), threads=ONE)
        record = {**record, "processes": [*record["processes"], made]}
        yield record, ""


def _row(record: Record, trained: Configuration | Loop, setting: str) -> dict[str, Any]:
    mode = _mode_of(setting)
    estimate = estimate_loop if isinstance(trained, Loop) else estimate_mode
    predicted = in_process(estimate, trained.name, mode, threads=ONE)
    phases = {}
    for phase, (peak, low, high) in predicted["phases"].items():
        measured = [peak for process in record["processes"] for peak in process[phase]]
        phases[phase] = {
            "predicted": peak,
            "range": [low, high],
            "measured": [min(measured), max(measured)],
            "error": distance(peak, measured),
        }
    return {"name": trained.name, "family": trained.family, "mode": mode, **predicted, "phases": phases}


def estimate_loop(name: str, mode: str) -> dict[str, Any]:
    """As `estimate_mode`, of a training loop."""
    import memest

    loop = LOOPS[name]
    step = step_in_mode(loop.make(), mode)
    begun = time.perf_counter()
    made = memest.estimate_function(step, *loop.specs, run_eagerly=mode == EAGER, compile_timeout=COMPILE_TIMEOUT_S)
    return _told(made, mode, time.perf_counter() - begun)


def estimate_mode(name: str, mode: str) -> dict[str, Any]:
    """Peak, lowest and highest of each phase in bytes, and what was assumed; run in a process of its own."""
    import memest

    configuration = CONFIGURATIONS[name]
    further: dict[str, Any] = {}
    if "predict" in phases_of(configuration):
        size = predict_batch_size(configuration)
        further = {
            "validation_batch_size": validation_batch_size(configuration),
            "predict_batch_size": size,
            "predict_examples": size * BATCHES_A_PASS,
            "saves": SAVED,
        }
    begun = time.perf_counter()
    made = memest.estimate(
        configuration.build,
        batch_size=configuration.batch_size,
        inputs=configuration.inputs,
        targets=configuration.targets,
        jit_compile=mode == XLA,
        run_eagerly=mode == EAGER,
        compile_timeout=COMPILE_TIMEOUT_S,
        **further,
    )
    return _told(made, mode, time.perf_counter() - begun)


def _told(made: Any, mode: str, seconds: float) -> dict[str, Any]:
    if made.subject.mode != mode:
        raise ValueError(f"The estimate is for {made.subject.mode}, not for {mode}.")
    unasked = [note for note in made.assumptions if note.startswith("APPROXIMATION")]
    if unasked:
        raise ValueError(unasked[0])
    return {
        "seconds": seconds,
        "phases": {phase.name: (phase.peak_bytes, *phase.peak_range) for phase in made.phases.values()},
        "assumptions": list(made.assumptions),
    }


def _summaries(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Peaks, one inter-op thread. Distances from the measured range")
    for title in ("mode", "phase"):
        table.add_column(title)
    for title in ("configurations", "median", "95 %", "worst"):
        table.add_column(title, justify="right")
    for mode in dict.fromkeys(row["mode"] for row in rows):
        table.add_section()
        for phase in PHASES:
            errors = [row["phases"][phase]["error"] for row in rows if row["mode"] == mode and phase in row["phases"]]
            if errors:
                found = summary(errors)
                sizes = (f"{size:.1%}" for size in (found.median, found.p95, found.worst))
                table.add_row(mode, phase.replace("_", " "), str(found.count), *sizes)
    return table


def _worst(rows: list[dict[str, Any]], count: int) -> Table:
    table = Table(title="The worst of all phases")
    for title in ("configuration", "mode", "phase"):
        table.add_column(title)
    for title in ("error", "predicted", "range", "measured"):
        table.add_column(title, justify="right")
    found = [(row, phase, values) for row in rows for phase, values in row["phases"].items()]
    for row, phase, values in sorted(found, key=lambda one: -abs(one[2]["error"]))[:count]:
        table.add_row(
            row["name"],
            row["mode"],
            phase.replace("_", " "),
            f"{values['error']:+.1%}",
            format_bytes(values["predicted"]),
            _span(values["range"]),
            _span(values["measured"]),
        )
    return table


def _span(ends: list[int]) -> str:
    return " to ".join(dict.fromkeys(format_bytes(end) for end in ends))


if __name__ == "__main__":
    main()
