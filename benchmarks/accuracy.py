"""Predicted against measured peaks: build, first step and later steps.

python -m benchmarks.accuracy [--only measure|estimate] [--match PATTERN] [--threads one|default|both] [--worst N]

Every configuration is measured in fresh processes under the CPU's BFC allocator with oneDNN on, and estimated in
another. An error is how far the estimate lies outside the range of the measured peaks, relative to the nearer end.
Measurements are kept in a file and made again only where the configuration, TensorFlow or Keras changed, so
`--only estimate` holds today's estimates against them within minutes.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.about import about
from benchmarks.about import console as terminal
from benchmarks.baselines import baselines
from benchmarks.configuration import Configuration, by_turns
from benchmarks.estimate import estimate
from benchmarks.measure import measure
from benchmarks.models import CONFIGURATIONS
from benchmarks.processes import DEFAULT, ONE, THREADS, ProcessError, in_process
from benchmarks.report import print_report
from benchmarks.rows import row_of
from benchmarks.store import Store

MEASURE, ESTIMATE = "measure", "estimate"


def main() -> None:
    args = _arguments()
    console = terminal()
    store = Store(args.measured)
    chosen = [one for one in by_turns(CONFIGURATIONS.values()) if re.search(args.match, f"{one.family}: {one.name}")]
    threads = THREADS if args.threads == "both" else (args.threads,)
    pairs = [(one, setting) for setting in threads for one in chosen]
    if args.only != ESTIMATE:
        for configuration, setting in pairs:
            _measure(console, store, configuration, setting, args.steps, args.processes)
    if args.only == MEASURE:
        return
    rows = []
    args.json.parent.mkdir(parents=True, exist_ok=True)
    for configuration, setting in pairs:
        row = _row(console, store, configuration, setting)
        if row is not None:
            rows.append(row)
            args.json.write_text(json.dumps({**about(), "rows": rows}, indent=1))
    if not rows:
        console.print("Nothing was measured that matches; leave out --only estimate to measure.")
        return
    print_report(console, rows, args.worst)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=(MEASURE, ESTIMATE), help="one of the two stages; default is both")
    parser.add_argument("--match", default="", help='regular expression on "family: name"')
    parser.add_argument("--threads", choices=(ONE, DEFAULT, "both"), default="both", help="inter-op threads")
    parser.add_argument("--worst", type=int, default=15, help="how many of the worst to print")
    parser.add_argument("--steps", type=int, default=10, help="measured steps a process, the first included")
    parser.add_argument("--processes", type=int, default=2, help="measuring processes a configuration")
    parser.add_argument(
        "--measured", type=Path, default=Path("build/measured.json"), help="where measurements are kept"
    )
    parser.add_argument("--json", type=Path, default=Path("build/accuracy.json"), help="where the result goes")
    return parser.parse_args()


def _measure(
    console: Console, store: Store, configuration: Configuration, threads: str, steps: int, processes: int
) -> None:
    record = store.record(configuration, threads)
    try:
        while len(record["processes"]) < processes:
            # Every second process profiles its first step too.
            profiles_first = len(record["processes"]) % 2 == 1
            made = in_process(measure, configuration.name, steps, profiles_first, threads=threads)
            record = {**record, "processes": [*record["processes"], made]}
            store.put(configuration, threads, record)
            seconds = sorted(made["seconds"])[len(made["seconds"]) // 2]
            console.print(f"[dim]measured {configuration.name}, {threads}: {seconds:.2f} s a step[/]", highlight=False)
        if record["baselines"] is None:
            # Threads do not matter to them.
            known = [store.record(configuration, other)["baselines"] for other in THREADS]
            found = next(filter(None, known), None) or in_process(baselines, configuration.name, threads=threads)
            record = {**record, "baselines": found}
            store.put(configuration, threads, record)
    except ProcessError as error:
        console.print(f"{configuration.name}, {threads}: {error}", style="red", highlight=False)


def _row(console: Console, store: Store, configuration: Configuration, threads: str) -> dict[str, Any] | None:
    record = store.record(configuration, threads)
    if not record["processes"]:
        return None
    try:
        row = row_of(record, in_process(estimate, configuration.name, threads=threads))
    except ProcessError as error:
        console.print(f"{configuration.name}, {threads}: {error}", style="red", highlight=False)
        return None
    errors = ", ".join(f"{name} {phase['error']:+.1%}" for name, phase in row["phases"].items())
    console.print(f"[dim]{row['name']}, {threads}: {errors} in {row['seconds']:.1f} s[/]", highlight=False)
    return row


if __name__ == "__main__":
    main()
