"""An estimate as text, for `print` and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.dominant import dominant
from tensorboard_plugin_memest.memory.paper import Paper
from tensorboard_plugin_memest.memory.units import format_bytes

if TYPE_CHECKING:
    from tensorboard_plugin_memest.memory.estimate import Estimate

# A model of thousands of layers is for the Memory tab; here the largest tell enough.
MOST_LAYERS = 15
# A category below this share of the peak is told under "other".
WORTH_A_COLUMN = 0.005

PHASES = {"first_step": "first step"}  # those that are not called by their names


def as_text(estimate: Estimate) -> str:
    """Headline, phases, the layers that hold most, the dominant variables and the assumptions; no colours."""
    paper = Paper()
    subject = estimate.subject
    optimizer = f", {subject.optimizer}" if subject.optimizer else ""
    paper.say(
        f"{subject.model_name} ({subject.model_class}): {subject.parameters:,} parameters, batch {subject.batch_size}"
        f"{optimizer}, {subject.mode} mode on {subject.device}"
    )
    paper.say(f"Predicted peak: {format_bytes(estimate.peak_bytes)} ({estimate.peak_bytes:,} bytes)\n")
    paper.draw(_phases(estimate))
    paper.draw(_layers(estimate))
    for one in dominant(estimate.items):
        paper.say(one.sentence)
    if estimate.limit_bytes is not None:
        paper.say(estimate.fits(estimate.limit_bytes).sentence)
    if estimate.assumptions:
        paper.say("\nAssumed:")
        for assumption in estimate.assumptions:
            paper.say(f"- {assumption}")
    return paper.text()


def _phases(estimate: Estimate) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Phase")
    table.add_column("Peak", justify="right")
    table.add_column("Can be", justify="right")
    on_host = any(phase.host_peak_bytes for phase in estimate.phases.values())
    if on_host:
        table.add_column("On the host", justify="right")
    table.add_column("Reached at", overflow="fold")
    for phase in estimate.phases.values():
        low, high = (format_bytes(end) for end in phase.peak_range)
        spread = f"{low} to {high}" if low != high else ""
        host = [format_bytes(phase.host_peak_bytes) if phase.host_peak_bytes else ""] if on_host else []
        table.add_row(PHASES.get(phase.name, phase.name), format_bytes(phase.peak_bytes), spread, *host, phase.peak_op)
    return table


def _layers(estimate: Estimate) -> Table:
    peak = estimate.peak_bytes
    shown = [category for category, held in estimate.peak_phase.categories.items() if held >= WORTH_A_COLUMN * peak]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    sums = _cells(estimate.peak_phase.categories, shown)
    for heading, footer in zip(
        ["At the peak", *(c.label for c in shown), "other", "total"], ["total", *sums], strict=True
    ):
        if heading == "At the peak":
            table.add_column(heading, footer=footer, no_wrap=True, min_width=24)
        else:
            table.add_column(heading, footer=footer, justify="right", no_wrap=True)
    ranked = sorted((layer for layer in estimate.layers if layer.bytes_at_peak), key=lambda layer: -layer.bytes_at_peak)
    for layer in ranked[:MOST_LAYERS]:
        name = f"{layer.path} ({layer.class_name})" if layer.class_name else layer.path
        table.add_row(name, *_cells(layer.bytes_per_category, shown))
    rest = ranked[MOST_LAYERS:]
    if rest:
        together = {category: sum(layer.bytes_per_category.get(category, 0) for layer in rest) for category in Category}
        table.add_row(f"{len(rest)} others", *_cells(together, shown))
    return table


def _cells(held: Mapping[Category, int], shown: list[Category]) -> list[str]:
    """A cell for each shown category, one for all others, and the total."""
    total = sum(held.values())
    parts = [held.get(category, 0) for category in shown]
    return [format_bytes(part) if part else "" for part in [*parts, total - sum(parts)]] + [format_bytes(total)]
