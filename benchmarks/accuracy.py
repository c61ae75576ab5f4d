"""Predicted against measured peaks: build, first step and later steps.

python -m benchmarks.accuracy [--only measure|estimate] [--match PATTERN] [--threads one|default|both] [--worst N]

Every configuration is measured in fresh processes under the CPU's BFC allocator with oneDNN on, and estimated in
another. An error is how far the estimate lies outside the range of the measured peaks, relative to the nearer end. The
order of ops, and with it the peak, hangs on addresses, which differ from run to run, so several processes are measured,
each forked from another server. Measurements are kept in a file and made again only where the configuration, TensorFlow
or Keras changed, so `--only estimate` holds today's estimates against them within minutes.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.about import console
from benchmarks.baselines import baselines
from benchmarks.configuration import Configuration
from benchmarks.estimate import estimate
from benchmarks.measure import measure
from benchmarks.models import CONFIGURATIONS
from benchmarks.processes import DEFAULT, ONE, THREADS, in_new_interpreter, in_process
from benchmarks.report import print_report
from benchmarks.rows import row_of
from benchmarks.stages import ESTIMATE, MEASURE, chosen, parser_of, run_stages
from benchmarks.store import Record, Store


def main() -> None:
    args = _arguments()
    if args.only != ESTIMATE:
        for processes in range(1, args.processes + 1):
            in_new_interpreter(_run, _with(args, only=MEASURE, processes=processes))
    if args.only != MEASURE:
        _run(_with(args, only=ESTIMATE))


def _with(args: argparse.Namespace, **others: Any) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), **others})


def _run(args: argparse.Namespace) -> None:
    terminal = console()
    settings = THREADS if args.threads == "both" else (args.threads,)
    pairs = [(one, threads) for threads in settings for one in chosen(CONFIGURATIONS.values(), args.match)]
    measuring = functools.partial(_measured, args.steps, args.processes)
    rows = run_stages(terminal, args, pairs, measuring, _row)
    if rows:
        print_report(terminal, rows, args.worst)


def _arguments() -> argparse.Namespace:
    parser = parser_of(__doc__, measured="build/measured.json", result="build/accuracy.json", worst=15)
    parser.add_argument("--threads", choices=(ONE, DEFAULT, "both"), default="both", help="inter-op threads")
    parser.add_argument("--steps", type=int, default=10, help="measured steps a process, the first included")
    parser.add_argument("--processes", type=int, default=4, help="measuring processes a configuration")
    return parser.parse_args()


def _measured(
    steps: int, processes: int, store: Store, configuration: Configuration, threads: str
) -> Iterator[tuple[Record, str]]:
    record = store.record(configuration, threads)
    while len(record["processes"]) < processes:
        # Every second process profiles its first step too.
        profiles_first = len(record["processes"]) % 2 == 1
        made = in_process(measure, configuration.name, steps, profiles_first, threads=threads)
        record = {**record, "processes": [*record["processes"], made]}
        seconds = sorted(made["seconds"])[len(made["seconds"]) // 2]
        yield record, f": {seconds:.2f} s a step"
    if record["baselines"] is None:
        # Threads do not matter to them.
        known = [store.record(configuration, other)["baselines"] for other in THREADS]
        found = next(filter(None, known), None) or in_process(baselines, configuration.name, threads=threads)
        yield {**record, "baselines": found}, ": baselines"


def _row(record: Record, configuration: Configuration, threads: str) -> dict[str, Any]:
    return row_of(record, in_process(estimate, configuration.name, threads=threads))


if __name__ == "__main__":
    main()
