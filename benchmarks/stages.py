"""The two stages of a benchmark of predictions: what is missing is measured and kept, then held against estimates."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.about import about
from benchmarks.configuration import Trained, by_turns
from benchmarks.processes import ProcessError
from benchmarks.store import Record, Store

MEASURE, ESTIMATE = "measure", "estimate"

# Measures what the record of a training lacks, and gives it each time there is more in it, with what to say of that.
Measure = Callable[[Store, Any, str], Iterator[tuple[Record, str]]]
# Estimates a training that was measured: a row with at least `name`, `seconds`, and `phases` with their errors.
Compare = Callable[[Record, Any, str], dict[str, Any]]


def parser_of(description: str | None, *, measured: str, result: str, worst: int) -> argparse.ArgumentParser:
    """The arguments that every such benchmark takes; `measured` and `result` are the files that it writes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=(MEASURE, ESTIMATE), help="one of the two stages; default is both")
    parser.add_argument("--match", default="", help='regular expression on "family: name"')
    parser.add_argument("--worst", type=int, default=worst, help="how many of the worst to print")
    parser.add_argument("--measured", type=Path, default=Path(measured), help="where measurements are kept")
    parser.add_argument("--json", type=Path, default=Path(result), help="where the result goes")
    return parser


def chosen(trained: Iterable[Trained], match: str) -> list[Trained]:
    """Those that match, of every family in turn."""
    return [one for one in by_turns(trained) if re.search(match, f"{one.family}: {one.name}")]


def run_stages(
    terminal: Console,
    args: argparse.Namespace,
    pairs: Sequence[tuple[Trained, str]],
    measure: Measure,
    compare: Compare,
) -> list[dict[str, Any]]:
    """Runs the stages that `args` ask for; the result is on disk after every row, measurements after every process.

    Args:
        terminal: where to say what happens.
        args: of `parser_of`.
        pairs: what is trained, and the setting it is kept under.
        measure: the first stage of a pair.
        compare: the second, for a pair of which something was measured.

    Returns:
        The rows; none where nothing was to be estimated, or nothing that matches was measured.
    """
    store = Store(args.measured)
    rows: list[dict[str, Any]] = []
    for stage in (MEASURE, ESTIMATE):
        if args.only not in (None, stage):
            continue
        for trained, setting in pairs:
            try:
                if stage == MEASURE:
                    for record, said in measure(store, trained, setting):
                        store.put(trained, setting, record)
                        terminal.print(f"[dim]measured {trained.name}, {setting}{said}[/]", highlight=False)
                elif (record := store.record(trained, setting))["processes"]:
                    rows.append(compare(record, trained, setting))
                    _keep(terminal, args.json, rows, setting)
            except ProcessError as error:
                terminal.print(f"{trained.name}, {setting}: {error}", style="red", highlight=False)
    if not rows and args.only != MEASURE:
        terminal.print("Nothing was measured that matches; leave out --only estimate to measure.")
    return rows


def _keep(terminal: Console, path: Path, rows: Sequence[dict[str, Any]], setting: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**about(), "rows": rows}, indent=1))
    row = rows[-1]
    errors = ", ".join(f"{phase} {found['error']:+.1%}" for phase, found in row["phases"].items())
    terminal.print(f"[dim]{row['name']}, {setting}: {errors} in {row['seconds']:.1f} s[/]", highlight=False)
