"""Rows of errors as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.errors import percentile, summary
from benchmarks.rows import PHASES
from tensorboard_plugin_memest.memory.units import format_bytes

Row = dict[str, Any]


def print_report(console: Console, rows: Sequence[Row], worst: int) -> None:
    """Summaries for each thread setting, by family and over all, and the `worst` configurations of each."""
    for threads in dict.fromkeys(row["threads"] for row in rows):
        some = [row for row in rows if row["threads"] == threads]
        console.print(_families(some, threads))
        console.print(_ranges(some, threads))
        if worst:
            console.print(_worst(some, threads, worst))


def _families(rows: Sequence[Row], threads: str) -> Table:
    table = Table(title=f"Steady peak, inter-op threads: {threads}. Distances from the measured range, %")
    table.add_column("family")
    table.add_column("configurations", justify="right")
    kinds = ("memest", "without scratch", "Grappler", "formula")
    for title in [*(f"{kind}: median, 95 %, worst" for kind in kinds), "spread: median, worst"]:
        table.add_column(title, justify="right")
    for family in dict.fromkeys(row["family"] for row in rows):
        _add(table, family, [row for row in rows if row["family"] == family])
    table.add_section()
    _add(table, "all", rows)
    return table


def _add(table: Table, name: str, rows: Sequence[Row]) -> None:
    steps = [row["phases"]["step"] for row in rows]
    columns: list[list[float]] = [
        [step["error"] for step in steps],
        [step["error_without_scratch"] for step in steps if "error_without_scratch" in step],
        [row["grappler"] for row in rows if "grappler" in row],
        [row["formula"] for row in rows if "formula" in row],
    ]
    spreads = [step["spread"] for step in steps]
    spread = f"{percentile(spreads, 0.5):.1%}, {max(spreads):.1%}"
    table.add_row(name, str(len(rows)), *(_summed(column) for column in columns), spread)


def _summed(errors: Sequence[float]) -> str:
    if not errors:
        return "-"
    found = summary(errors)
    return f"{found.median:.1%}, {found.p95:.1%}, {found.worst:.1%}"


def _ranges(rows: Sequence[Row], threads: str) -> Table:
    table = Table(title=f"Phases, inter-op threads: {threads}")
    for title in ("phase", "total: median, 95 %, worst", "without scratch", "against the highest"):
        table.add_column(title)
    for title in ("measured in range", "low end: median, 95 %, worst", "high end"):
        table.add_column(title)
    for phase in PHASES:
        found = [row["phases"][phase] for row in rows if phase in row["phases"]]
        held = [held for one in found for held in one["held"]]

        def column(key: str, found: Iterable[Any] = found) -> str:
            return _summed([one[key] for one in found if key in one])

        table.add_row(
            phase,
            column("error"),
            column("error_without_scratch"),
            column("error_to_highest"),
            f"{sum(held) / len(held):.1%}" if held else "-",
            column("low_error"),
            column("high_error"),
        )
    return table


def _worst(rows: Sequence[Row], threads: str, count: int) -> Table:
    table = Table(title=f"The worst of the steady steps, inter-op threads: {threads}")
    table.add_column("configuration")
    for title in ("error", "predicted", "measured", "range", "without scratch", "measured without", "first", "build"):
        table.add_column(title, justify="right")
    for row in sorted(rows, key=lambda row: -abs(row["phases"]["step"]["error"]))[:count]:
        step = row["phases"]["step"]
        table.add_row(
            row["name"],
            f"{step['error']:+.1%}",
            format_bytes(step["predicted"]),
            _span(step["measured"]),
            _span(step["range"]),
            f"{step['error_without_scratch']:+.1%}",
            _span(step["measured_without_scratch"]),
            f"{row['phases']['first_step']['error']:+.1%}",
            f"{row['phases']['build']['error']:+.1%}" if "build" in row["phases"] else "-",
        )
    return table


def _span(ends: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(format_bytes(end) for end in ends))
