"""An estimate of a data pipeline as text, for `print` and for notebooks."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from tensorboard_plugin_memest.memory.text import WIDTH
from tensorboard_plugin_memest.memory.units import format_bytes

if TYPE_CHECKING:
    from tensorboard_plugin_memest.memory.host import HostAdvice, HostEstimate


def as_text(estimate: HostEstimate) -> str:
    """Headline, stages, the changes that help and the assumptions; no colours."""
    file, console = _paper()
    peak = estimate.peak_bytes
    console.print(f"Host memory of the data pipeline: {format_bytes(peak)} ({peak:,} bytes)", markup=False)
    if estimate.startup_bytes > peak:
        console.print(f"For a moment at the start: {format_bytes(estimate.startup_bytes)}", markup=False)
    if estimate.slack_bytes:
        console.print(
            f"Beside it, in the books and holes of the allocators: up to {format_bytes(estimate.slack_bytes)}",
            markup=False,
        )
    stages = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    stages.add_column("Stage", footer="total", no_wrap=True)
    stages.add_column("Holds", footer=format_bytes(peak), justify="right", no_wrap=True)
    stages.add_column("Elements", justify="right", no_wrap=True)
    stages.add_column("Each", justify="right", no_wrap=True)
    stages.add_column("Why")
    for stage in estimate.stages:
        elements = "" if stage.elements is None else f"{stage.elements:,}"
        each = format_bytes(stage.element_bytes) if stage.element_bytes else ""
        stages.add_row(stage.name, format_bytes(stage.bytes), elements, each, stage.reason)
    console.print(stages)
    if estimate.levers:
        _print_advice(console, estimate.advice())
    if estimate.assumptions:
        console.print("\nAssumed:", markup=False)
        for assumption in estimate.assumptions:
            console.print(f"- {assumption}", markup=False)
    return _written(file)


def advice_as_text(advice: HostAdvice) -> str:
    """The changes as a table, the code of those that help, and why the others do not; no colours."""
    file, console = _paper()
    _print_advice(console, advice)
    return _written(file)


def _paper() -> tuple[io.StringIO, Console]:
    file = io.StringIO()
    return file, Console(file=file, width=WIDTH, color_system=None, highlight=False)


def _written(file: io.StringIO) -> str:
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _print_advice(console: Console, advice: HostAdvice) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("What would change it")
    table.add_column("Peak then", justify="right", no_wrap=True)
    table.add_column("Saves", justify="right", no_wrap=True)
    table.add_column("Cost, or why it does not help")
    for lever in (*advice.levers, *advice.useless):
        saves = format_bytes(lever.saving_bytes) if lever.saving_bytes > 0 else "nothing"
        table.add_row(lever.name, format_bytes(lever.peak_bytes), saves, lever.reason or lever.cost)
    console.print(table)
    for lever in advice.levers:
        console.print(f"- {lever.name}: {lever.code}", markup=False)
