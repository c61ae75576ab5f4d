"""An explanation of an out-of-memory error as text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from tensorboard_plugin_memest.memory.paper import WIDTH
from tensorboard_plugin_memest.memory.units import format_bytes, format_share

if TYPE_CHECKING:
    from tensorboard_plugin_memest.memory.explanation import Explanation

# Who ran out, where it was the host's own memory and no device's.
HOST = "the host"

# More than these are for the Memory tab.
MOST_LIVE = 10

PHASES = {
    "build": "while the model was built",
    "first_step": "in the first step",
    "step": "in a training step",
    "evaluate": "in evaluation",
    "predict": "in prediction",
}


def what_changes_save(limit_bytes: int) -> str:
    """How to find out what each change is worth; of no use to who sees that already."""
    return f"What each change would save is worked out by memest.estimate(...).advice({format_bytes(limit_bytes)!r})."


def headline(explanation: Explanation) -> str:
    """What happened, in one sentence."""
    what = f"{explanation.dtype or ''}{list(explanation.shape)}" if explanation.shape is not None else ""
    whose = explanation.role or ""
    if explanation.variable or explanation.layer:
        whose = f"{whose} of {explanation.variable or explanation.layer}" if whose else str(explanation.layer)
    told = ", ".join(part for part in (what, whose) if part)
    source = explanation.source[:1].upper() + explanation.source[1:]
    for_whom = f" ({told})" if told else ""
    if explanation.bytes is None:
        return f"{source} ran out of memory{_where(explanation)}{for_whom}."
    return f"{source} ran out{_where(explanation)} when asked for {format_bytes(explanation.bytes)}{for_whom}."


def sentence(explanation: Explanation) -> str:
    """That it happened, and whose memory it was where that is known; as short as can be."""
    on_gpu = (explanation.device or "").startswith("GPU")
    whose = "the host's memory" if explanation.source == HOST else "GPU memory" if on_gpu else "memory"
    return f"The run ran out of {whose}{_where(explanation)}."


def _where(explanation: Explanation) -> str:
    """With a space before it; empty where the phase is not known."""
    if explanation.step is not None and explanation.phase == "step":
        return f" in step {explanation.step}"
    return f" {PHASES[explanation.phase]}" if explanation.phase in PHASES else ""


def as_text(explanation: Explanation) -> str:
    """What happened, where, what was there already, what had been predicted, and what to change; no colours."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, highlight=False)
    console.print(headline(explanation) + "\n", markup=False)
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, value in _facts(explanation):
        facts.add_row(name, value)
    console.print(facts)
    if explanation.live:
        console.print(_live(explanation))
    if explanation.expectation:
        console.print(f"\n{explanation.expectation}", markup=False)
    if explanation.advice:
        console.print("\nWhat to change:", markup=False)
        for sentence in explanation.advice:
            console.print(f"- {sentence}", markup=False)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _facts(explanation: Explanation) -> list[tuple[str, str]]:
    size = explanation.bytes
    allocator = f"{explanation.device or ''} {explanation.allocator or ''}".strip()
    facts = [
        ("Failed op", explanation.op),
        ("Asked for", None if size is None else f"{format_bytes(size)} ({size:,} bytes)"),
        ("Tensor", None if explanation.shape is None else f"{explanation.dtype or ''}{list(explanation.shape)}"),
        ("Layer", explanation.layer),
        ("Variable", explanation.variable),
        ("What it is", _kind(explanation)),
        ("Allocator", allocator or None),
        ("In use before", None if explanation.in_use_bytes is None else format_bytes(explanation.in_use_bytes)),
        ("Limit", None if explanation.limit_bytes is None else format_bytes(explanation.limit_bytes)),
        ("Message", explanation.message),
    ]
    return [(name, value.replace("[", r"\[")) for name, value in facts if value]


def _kind(explanation: Explanation) -> str | None:
    if explanation.category is None:
        return explanation.role
    return f"{explanation.role} ({explanation.category.label})" if explanation.role else explanation.category.label


def _live(explanation: Explanation) -> Table:
    total = sum(item.bytes for item in explanation.live)
    title = "Alive at the predicted peak" if explanation.live_is_predicted else "Alive when it failed"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, overflow="fold")
    table.add_column("What", no_wrap=True)
    table.add_column("Shape", no_wrap=True)
    table.add_column("Bytes", justify="right", no_wrap=True)
    table.add_column("Share", justify="right", no_wrap=True)
    for item in explanation.live[:MOST_LIVE]:
        shape = "" if item.shape is None else f"{item.dtype or ''}{list(item.shape)}".replace("[", r"\[")
        name = item.variable or item.name or item.layer
        table.add_row(name, item.role, shape, format_bytes(item.bytes), format_share(item.bytes, total))
    rest = explanation.live[MOST_LIVE:]
    if rest:
        size = sum(item.bytes for item in rest)
        table.add_row(f"{len(rest)} others", "", "", format_bytes(size), format_share(size, total))
    return table
