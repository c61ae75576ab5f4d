"""A rehearsal as text: what was measured beside what had been predicted."""

from __future__ import annotations

import io

from rich import box
from rich.console import Console
from rich.table import Table

from tensorboard_plugin_memest.memory.paper import WIDTH
from tensorboard_plugin_memest.memory.rehearsal import Rehearsal
from tensorboard_plugin_memest.memory.text import PHASES
from tensorboard_plugin_memest.memory.units import format_bytes


def as_text(rehearsal: Rehearsal) -> str:
    """Outcome, phases, the explanation if it died, and notes; no colours."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, highlight=False)
    print_rehearsal(rehearsal, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def print_rehearsal(rehearsal: Rehearsal, console: Console) -> None:
    """The same, in colours where the console has any."""
    colour = "green" if rehearsal.completed else "red"
    console.print(headline(rehearsal), style=f"bold {colour}", markup=False, soft_wrap=True)
    console.print(phase_table(rehearsal))
    if rehearsal.explanation is not None:
        console.print(str(rehearsal.explanation), markup=False, soft_wrap=True)
        console.print()
    for note in rehearsal.notes:
        console.print(f"- {note}", style="dim", markup=False)


def headline(rehearsal: Rehearsal) -> str:
    """Whether it got through, in one sentence."""
    within = "" if rehearsal.limit_bytes is None else f" within {format_bytes(rehearsal.limit_bytes)}"
    steps = sum(phase.steps for phase in rehearsal.phases.values())
    if rehearsal.completed:
        peak = rehearsal.peak_bytes
        most = "" if peak is None else f"; the most in use was {format_bytes(peak)} ({peak:,} bytes)"
        return f"The rehearsal completed {steps} step{'' if steps == 1 else 's'}{within}{most}."
    last = next((phase.name for phase in rehearsal.phases.values() if not phase.completed), None)
    if last is None and rehearsal.explanation is not None:
        # The process ended before it could measure that phase.
        last, steps = rehearsal.explanation.phase, steps + 1
    where = {"build": "while the model was built", "first_step": "in the first step", "step": f"in step {steps}"}
    return f"The rehearsal died {where.get(last or '', 'before anything was measured')}{within}."


def phase_table(rehearsal: Rehearsal) -> Table:
    """A row for each phase: measured, predicted, what stayed."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("Phase", "Measured peak", "Predicted", "In use after", ""):
        table.add_column(name, justify="left" if name in ("Phase", "") else "right")
    for phase in rehearsal.phases.values():
        predicted = rehearsal.estimate.phases.get(phase.name) if rehearsal.estimate else None
        table.add_row(
            PHASES.get(phase.name, phase.name),
            format_bytes(phase.peak_bytes),
            format_bytes(predicted.peak_bytes) if predicted else "",
            format_bytes(phase.current_bytes),
            "" if phase.completed else "died here",
        )
    return table
