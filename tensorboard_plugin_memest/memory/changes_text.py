"""Changes as text, of a model as of a data pipeline: what each saves, its code, and why others do not help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from rich import box
from rich.table import Table

from tensorboard_plugin_memest.memory.paper import Paper
from tensorboard_plugin_memest.memory.units import format_bytes, format_share


class Change(Protocol):
    """A change that was estimated."""

    @property
    def title(self) -> str: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def saving_bytes(self) -> int: ...
    @property
    def cost(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def reason(self) -> str | None: ...


C = TypeVar("C", bound=Change)


def changes_table(
    changes: Iterable[C],
    before_bytes: int,
    saved: Callable[[C], tuple[int, str]] | None = None,
    further: Mapping[str, Callable[[C], str]] | None = None,
) -> Table:
    """A row for each change.

    Args:
        changes: in the order of the rows.
        before_bytes: the peak as it is.
        saved: what a change saves, and that in proportion; None for its share of the peak as it is.
        further: more columns.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Change", overflow="fold")
    for heading in ("Peak after", "Saves", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    columns = further or {}
    for heading in columns:
        table.add_column(heading)
    for change in changes:
        number, share = (
            saved(change) if saved else (change.saving_bytes, format_share(change.saving_bytes, before_bytes))
        )
        cells = [column(change) for column in columns.values()]
        table.add_row(change.title, format_bytes(change.peak_bytes), format_bytes(number), share, *cells)
    return table


def say_how(paper: Paper, changes: Sequence[Change]) -> None:
    """What each change costs, and its code where it has any."""
    for change in changes:
        paper.say(f"\n{change.title}. {change.cost}")
        if change.code:
            paper.say("\n".join(f"    {line}" for line in change.code.splitlines()))


def say_useless(paper: Paper, changes: Sequence[Change]) -> None:
    """Why each of `changes` does not help."""
    if changes:
        paper.say("\nDoes not help:")
    for change in changes:
        paper.say(f"- {change.title} ({format_bytes(change.peak_bytes)}): {change.reason}")
