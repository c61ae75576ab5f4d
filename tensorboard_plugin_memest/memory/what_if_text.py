"""A training under other choices as text: a row for each optimizer, precision and mode, a column for a batch size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from tensorboard_plugin_memest.memory.paper import Paper
from tensorboard_plugin_memest.memory.units import format_bytes

if TYPE_CHECKING:
    from tensorboard_plugin_memest.memory.what_if import WhatIf


def as_text(what_if: WhatIf) -> str:
    """The peaks of all combinations, those nearest to what there is first; no colours."""
    paper = Paper()
    base = what_if.base
    now = f"batch {base.batch_size}, {base.optimizer}, {base.precision}, {base.mode}"
    paper.say(f"Peaks of a training step; as it is: {now}.")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("Optimizer", "Precision", "Mode"):
        table.add_column(heading)
    for size in what_if.batch_sizes:
        table.add_column(f"batch {size}", justify="right", no_wrap=True)
    rows: dict[tuple[str, str, str], dict[int, int]] = {}
    for outcome in what_if.outcomes:
        chosen = outcome.choices
        row = rows.setdefault((chosen.optimizer, chosen.precision, chosen.mode), {})
        row[chosen.batch_size] = outcome.peak_bytes
    for names, peaks in rows.items():
        table.add_row(*names, *(format_bytes(peaks[size]) if size in peaks else "" for size in what_if.batch_sizes))
    paper.draw(table)
    for note in what_if.notes:
        paper.say(f"- {note}")
    return paper.text()
