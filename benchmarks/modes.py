"""Predicted against measured peaks of all modes and phases: graph, XLA and eager, from building to prediction.

python -m benchmarks.modes [--mode graph,xla,eager] [--match PATTERN] [--count N] [--only measure|estimate]

Each configuration is built, trained, evaluated and asked for predictions in fresh processes, under the CPU's BFC
allocator with oneDNN on and one inter-op thread, and estimated in another. An error is how far the estimate lies
outside the range of the measured peaks, relative to the nearer end. `benchmarks.accuracy` looks at more trainings in
graph mode; this one at everything else. Measurements are kept, as there.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.about import about, console
from benchmarks.configuration import Configuration, by_turns
from benchmarks.errors import distance, summary
from benchmarks.measure_modes import (
    BATCHES_A_PASS,
    EAGER,
    GRAPH,
    MODES,
    PHASES,
    STEPS,
    XLA,
    measure_mode,
    phases_of,
    predict_batch_size,
    validation_batch_size,
)
from benchmarks.models import CONFIGURATIONS
from benchmarks.processes import ONE, ProcessError, in_process
from benchmarks.store import Store
from tensorboard_plugin_memest.memory.units import format_bytes

MEASURE, ESTIMATE = "measure", "estimate"

# Less than a process may take: what XLA was not asked about is no row.
COMPILE_TIMEOUT_S = 540

# Processes a configuration is measured in: XLA repeats to the kilobyte.
PROCESSES = {GRAPH: 2, XLA: 1, EAGER: 2}


def main() -> None:
    args = _arguments()
    terminal = console()
    store = Store(args.measured)
    chosen = [one for one in by_turns(CONFIGURATIONS.values()) if re.search(args.match, f"{one.family}: {one.name}")]
    pairs = [(one, mode) for mode in args.mode.split(",") for one in chosen[: args.count]]
    if args.only != ESTIMATE:
        for configuration, mode in pairs:
            _measure(terminal, store, configuration, mode)
    if args.only == MEASURE:
        return
    rows = []
    args.json.parent.mkdir(parents=True, exist_ok=True)
    for configuration, mode in pairs:
        row = _row(terminal, store, configuration, mode)
        if row is not None:
            rows.append(row)
            args.json.write_text(json.dumps({**about(), "rows": rows}, indent=1))
    if not rows:
        terminal.print("Nothing was measured that matches; leave out --only estimate to measure.")
        return
    terminal.print(_summaries(rows))
    terminal.print(_worst(rows, args.worst))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", default=",".join(MODES), help="modes, with commas between them")
    parser.add_argument("--match", default="", help='regular expression on "family: name"')
    parser.add_argument("--count", type=int, default=26, help="how many configurations a mode, of every family in turn")
    parser.add_argument("--only", choices=(MEASURE, ESTIMATE), help="one of the two stages; default is both")
    parser.add_argument("--worst", type=int, default=20, help="how many of the worst to print")
    parser.add_argument("--measured", type=Path, default=Path("build/modes-measured.json"))
    parser.add_argument("--json", type=Path, default=Path("build/modes.json"), help="where the result goes")
    return parser.parse_args()


def _setting(mode: str) -> str:
    return f"{ONE}, {mode}"


def _measure(terminal: Console, store: Store, configuration: Configuration, mode: str) -> None:
    record = store.record(configuration, _setting(mode))
    while len(record["processes"]) < PROCESSES[mode]:
        try:
            made = in_process(measure_mode, configuration.name, mode, STEPS + len(record["processes"]), threads=ONE)
        except ProcessError as error:
            terminal.print(f"{configuration.name}, {mode}: {error}", style="red", highlight=False)
            return
        record = {**record, "processes": [*record["processes"], made]}
        store.put(configuration, _setting(mode), record)
        terminal.print(f"[dim]measured {configuration.name}, {mode}[/]", highlight=False)


def _row(terminal: Console, store: Store, configuration: Configuration, mode: str) -> dict[str, Any] | None:
    processes = store.record(configuration, _setting(mode))["processes"]
    if not processes:
        return None
    try:
        predicted = in_process(estimate_mode, configuration.name, mode, threads=ONE)
    except ProcessError as error:
        terminal.print(f"{configuration.name}, {mode}: {error}", style="red", highlight=False)
        return None
    phases = {}
    for phase, (peak, low, high) in predicted["phases"].items():
        measured = [peak for process in processes for peak in process[phase]]
        phases[phase] = {
            "predicted": peak,
            "range": [low, high],
            "measured": [min(measured), max(measured)],
            "error": distance(peak, measured),
        }
    errors = ", ".join(f"{phase} {found['error']:+.1%}" for phase, found in phases.items())
    terminal.print(f"[dim]{configuration.name}, {mode}: {errors} in {predicted['seconds']:.1f} s[/]", highlight=False)
    return {"name": configuration.name, "family": configuration.family, "mode": mode, **predicted, "phases": phases}


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
    if made.subject.mode != mode:
        raise ValueError(f"The estimate is for {made.subject.mode}, not for {mode}.")
    unasked = [note for note in made.assumptions if note.startswith("APPROXIMATION")]
    if unasked:
        raise ValueError(unasked[0])
    return {
        "seconds": time.perf_counter() - begun,
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
