"""An estimate of a data pipeline as text, for `print` and for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from tensorboard_plugin_memest.memory.changes_text import changes_table, say_how, say_useless
from tensorboard_plugin_memest.memory.paper import Paper
from tensorboard_plugin_memest.memory.units import format_bytes

if TYPE_CHECKING:
    from tensorboard_plugin_memest.memory.host import HostAdvice, HostEstimate


def as_text(estimate: HostEstimate) -> str:
    """Headline, stages, the changes that help and the assumptions; no colours."""
    paper = Paper()
    peak = estimate.peak_bytes
    paper.say(f"Host memory of the data pipeline: {format_bytes(peak)} ({peak:,} bytes)")
    if estimate.startup_bytes > peak:
        paper.say(f"For a moment at the start: {format_bytes(estimate.startup_bytes)}")
    if estimate.slack_bytes:
        paper.say(f"Beside it, in the books and holes of the allocators: up to {format_bytes(estimate.slack_bytes)}")
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
    paper.draw(stages)
    if estimate.levers:
        _say_advice(paper, estimate.advice(), peak)
    if estimate.assumptions:
        paper.say("\nAssumed:")
        for assumption in estimate.assumptions:
            paper.say(f"- {assumption}")
    return paper.text()


def advice_as_text(advice: HostAdvice) -> str:
    """The changes as a table, the code of those that help, and why the others do not; no colours."""
    paper = Paper()
    first = next(iter((*advice.levers, *advice.useless)), None)
    _say_advice(paper, advice, first.peak_bytes + first.saving_bytes if first else 0)
    return paper.text()


def _say_advice(paper: Paper, advice: HostAdvice, peak_bytes: int) -> None:
    if advice.levers:
        paper.draw(changes_table(advice.levers, peak_bytes))
    say_how(paper, advice.levers)
    say_useless(paper, advice.useless)
