"""Every buffer of a profile, with what it is and how long it is there.

What a buffer is follows from what allocated it and when, which is alike for many: a profile of a million events has a
few thousand kinds of buffers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tensorboard_plugin_memest.measure.alive import BEFORE, BEFORE_LAYER, Judge, Lives
from tensorboard_plugin_memest.measure.wire import Integers
from tensorboard_plugin_memest.measure.xplane import MemoryEvents
from tensorboard_plugin_memest.memory.allocations import Allocations
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.timeline import Span

Row = tuple[Item, int, int]


def buffers_of(
    events: MemoryEvents,
    lives: Lives,
    steps: Sequence[Span],
    backward_ns: Integers,
    judge: Judge,
    before: Sequence[Item],
    before_bytes: int,
    variables: Iterable[Item],
    attributed: Callable[[Item], Sequence[Item]],
) -> Allocations | None:
    """The buffers of a profile's timeline; None if the profile lacks events, so that they would not add up.

    Args:
        events: the allocator's events.
        lives: their pairs.
        steps: the training steps, in order.
        backward_ns: when ops of the backward pass began, sorted.
        judge: tells what a buffer is from how it was allocated.
        before: the variables that were there before the profile.
        before_bytes: what was in use then.
        variables: all variables there may be.
        attributed: the same item with its owner; what it is made of, where it is known to be several.
    """
    changes = np.where(events.allocates, events.bytes, -events.bytes)
    if not np.array_equal(before_bytes + np.cumsum(changes), events.in_use):
        return None
    starts = np.flatnonzero(events.allocates)
    first_of, kind_of = _kinds(starts, events, lives, steps, backward_ns)
    items = [judge.item(start) for start in first_of]
    lasting = [
        item.category is Category.UNATTRIBUTED or judge.outlives_its_step(start)
        for start, item in zip(first_of, items, strict=True)
    ]
    known = [attributed(item) for item in items]
    identities = _Identities(before, before_bytes, len(events))
    rows: list[Row] = []
    candidates: dict[int, int] = {}
    for start, kind in zip(starts.tolist(), kind_of.tolist(), strict=True):
        if lasting[kind]:
            candidates[start] = kind
        else:
            rows += [(item, start, int(lives.freed_at[start])) for item in known[kind]]
    ends = np.flatnonzero(~events.allocates)
    relevant = [end for end in ends.tolist() if lives.freed[end] < 0 or int(lives.freed[end]) in candidates]
    for position in sorted([*candidates, *relevant]):
        size = int(events.requested_bytes[position])
        if position in candidates:
            identities.allocate(position, size)
        else:
            identities.free(position, size, int(events.bytes[position]), int(lives.freed[position]))
    names = identities.named(variables)
    for start, kind in candidates.items():
        variable, end = names.get(start), int(lives.freed_at[start])
        if variable is None:
            rows += [(item, start, end) for item in known[kind]]
        else:
            rows.append((replace(variable, bytes=int(events.bytes[start])), start, end))
    return Allocations.of([*rows, *identities.before()])


def _kinds(
    starts: Integers, events: MemoryEvents, lives: Lives, steps: Sequence[Span], backward_ns: Integers
) -> tuple[list[int], Integers]:
    """Sorts allocations by all that decides what they are: the first of each kind, and the kind of each."""
    forever = np.iinfo(np.int64).max
    begin = events.time_ns[starts]
    freed = lives.freed_at[starts]
    end = np.where(freed < len(events), events.time_ns[np.minimum(freed, len(events) - 1)], forever)
    step_starts = np.array([step.start for step in steps], np.int64)
    step_ends = np.array([*(step.end for step in steps), -1], np.int64)
    step = np.searchsorted(step_starts, begin, side="right") - 1
    step = np.where((step >= 0) & (begin <= step_ends[step]), step, -1)
    turns = np.append(backward_ns, forever)
    turn = np.append(turns[np.searchsorted(backward_ns, step_starts)], forever)[step]
    columns = [
        *(column[starts] for column in (events.op, events.region, events.shape, events.thread, events.dtype)),
        events.requested_bytes[starts],
        events.bytes[starts],
        step >= 0,
        (step >= 0) & (end > step_ends[step]),
        (begin < turn) & (turn < end),
    ]
    kinds = np.zeros(len(starts), np.int64)
    for column in columns:
        _, codes = np.unique(column, return_inverse=True)
        _, kinds = np.unique(kinds * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    _, first = np.unique(kinds, return_index=True)
    return starts[first].tolist(), kinds


class _Identities:
    """Which buffer holds which variable when.

    A variable whose value is assigned while someone still reads it moves to a new buffer; the old one is freed after
    the last read. So a variable whose buffer is freed lives on in one of the same size that stays.

    Args:
        variables: those that were there before.
        before_bytes: everything that was.
        end: how many events there are.
    """

    def __init__(self, variables: Sequence[Item], before_bytes: int, end: int) -> None:
        self._end = end
        self._there = list(variables)
        self._seen = {item.name for item in variables}
        self._rows: list[Row] = []
        self._rest = before_bytes - sum(item.bytes for item in variables)
        self._rest_since = 0
        self._named: dict[int, Item] = {}
        self._unnamed: dict[int, deque[int]] = defaultdict(deque)
        self._homeless: dict[int, deque[Item]] = defaultdict(deque)

    def allocate(self, start: int, size: int) -> None:
        """A buffer that stays was allocated by the event `start`."""
        if self._homeless[size]:
            self._named[start] = self._homeless[size].popleft()
        else:
            self._unnamed[size].append(start)

    def free(self, position: int, size: int, held: int, start: int) -> None:
        """The event at `position` freed what the event `start` allocated; -1: what was there before."""
        if start < 0:
            moved = self._free_before(position, size, held)
        elif start in self._named:
            moved = self._named[start]
        else:
            self._unnamed[size].remove(start)
            return
        if moved is None:
            return
        if self._unnamed[size]:
            self._named[self._unnamed[size].popleft()] = moved
        else:
            self._homeless[size].append(moved)

    def named(self, variables: Iterable[Item]) -> dict[int, Item]:
        """The variable in each buffer that holds one, by the event that allocates it.

        Those of `variables` that were not there before go to the first buffers of their size, in order.
        """
        for item in variables:
            left = self._unnamed.get(item.requested_bytes)
            if left and item.name not in self._seen:
                self._named[left.popleft()] = item
        return self._named

    def before(self) -> Iterator[Row]:
        """What was there before, and until when."""
        yield from self._rows
        yield from ((item, 0, self._end) for item in self._there)
        yield _rest(self._rest), self._rest_since, self._end if self._rest else 0

    def _free_before(self, position: int, size: int, held: int) -> Item | None:
        for index, item in enumerate(self._there):
            if (item.requested_bytes, item.bytes) == (size, held):
                self._rows.append((item, 0, position))
                return self._there.pop(index)
        if self._rest:
            self._rows.append((_rest(self._rest), self._rest_since, position))
        self._rest -= held
        self._rest_since = position
        while self._rest < 0 and self._there:
            # What was taken for a variable was something else.
            wrong = self._there.pop(0)
            self._rows.append((wrong, 0, position))
            self._rest += wrong.bytes
        return None


def _rest(held: int) -> Item:
    return Item(BEFORE_LAYER, BEFORE, Category.UNATTRIBUTED, BEFORE, None, None, None, held, held)
