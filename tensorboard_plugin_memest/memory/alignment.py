"""A measured step on the axis of the predicted one, op by op."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from tensorboard_plugin_memest.memory.op_names import NO_OP, plain_name, short_name
from tensorboard_plugin_memest.memory.timeline import END_OF_STEP, Span, Timeline


class Taken(NamedTuple):
    """One op that takes memory: where in its curve, by how much the curve rises, and to what."""

    position: int
    op: str
    bytes: int
    live_bytes: int


@dataclass(frozen=True)
class OpDifference:
    """What one op took. Bytes are None on a side that does not know the op.

    Attributes:
        op: its name.
        tick: where it is on the predicted axis; None where only the measurement knows it.
        predicted_bytes: by how much the predicted curve rises there.
        measured_bytes: by how much the measured one does.
        predicted_live_bytes: what is in use just after, as predicted.
        measured_live_bytes: the same as measured.
    """

    op: str
    tick: float | None
    predicted_bytes: int | None
    measured_bytes: int | None
    predicted_live_bytes: int | None
    measured_live_bytes: int | None

    @property
    def difference_bytes(self) -> int:
        """Measured less predicted."""
        return (self.measured_bytes or 0) - (self.predicted_bytes or 0)

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class Aligned:
    """A measured step on the predicted axis.

    Attributes:
        timeline: every measured event of the step; its ticks are the prediction's, fractions between two ops that both
            know.
        first: which event of the profile its first one is.
        beside_bytes: how much more was in use when the step began than the prediction has at its start.
        predicted_ops: how many ops take memory in the prediction.
        measured_ops: how many do in the measurement.
        matched_ops: how many of them both know.
        in_order: how many of those come in an order that both share.
        differences: ops of which both sides do not say the same, the largest difference first; none where no op is
            known to both, as in a compiled step.
    """

    timeline: Timeline
    first: int
    beside_bytes: int
    predicted_ops: int
    measured_ops: int
    matched_ops: int
    in_order: int
    differences: tuple[OpDifference, ...]


def align(predicted: Timeline, measured: Timeline, step: Span, before_bytes: int) -> Aligned:
    """Lays the events of `step` in `measured` on the axis of `predicted`.

    Ops are known by their names; one that takes memory several times is matched in order. Two runs of one graph go
    through it in different orders. So that time runs one way on the common axis, the longest sequence of ops that both
    sides have in one order holds the curves together, and what lies between two of those is spread evenly.

    A step that XLA compiled takes its memory at once, without an op's name: then its block begins where the compiled
    program does, and ends where that does.

    Args:
        predicted: one step.
        measured: a profile.
        step: the stretch of it to lay out.
        before_bytes: what was in use when the profile began.

    Raises:
        ValueError: one of the two has no event there.
    """
    first, end = bisect_left(measured.ticks, step.start), bisect_right(measured.ticks, step.end)
    if not len(predicted) or first >= end:
        raise ValueError(
            f"There is no event to align: {len(predicted)} predicted, {max(0, end - first)} in {step.name}."
        )
    before = measured.live_bytes[first - 1] if first else before_bytes
    asked = _takers(predicted, 1, len(predicted), predicted.live_bytes[0])
    taken_there = _takers(measured, first, end, before)
    given = [taken for taken in taken_there if taken.op != NO_OP]
    pairs = _matched(asked, given)
    shared = _longest_rising(pairs)
    anchors = [(given[right].position - first, predicted.ticks[asked[left].position]) for left, right in shared]
    if not anchors:
        anchors = _program_anchors(predicted, taken_there, measured, first, end)
    used = {index: number for number, index in enumerate(dict.fromkeys(measured.op_index[first:end]))}
    ticks = _spread(anchors, end - first, predicted.ticks[0], predicted.ticks[-1])
    return Aligned(
        timeline=Timeline(
            unit="op",
            ticks=ticks,
            live_bytes=list(measured.live_bytes[first:end]),
            op_index=[used[index] for index in measured.op_index[first:end]],
            ops=[measured.ops[index] for index in used],
        ),
        first=first,
        beside_bytes=before - predicted.live_bytes[0],
        predicted_ops=len({taken.op for taken in asked}),
        measured_ops=len({taken.op for taken in given}),
        matched_ops=_ops_of(pairs, asked, given),
        in_order=_ops_of(shared, asked, given),
        differences=_differences(asked, given, pairs, predicted),
    )


def _takers(timeline: Timeline, first: int, end: int, before: int) -> list[Taken]:
    """The events from `first` to before `end` at which the curve rises."""
    found = []
    for position in range(first, end):
        live = timeline.live_bytes[position]
        if live > before:
            found.append(Taken(position, short_name(timeline.op_at(position)), live - before, live))
        before = live
    return found


def _matched(asked: Sequence[Taken], given: Sequence[Taken]) -> list[tuple[int, int]]:
    """Pairs of indexes of what one op takes on both sides, in the order of `given`.

    The number of a root scope depends on what ran before, so names that differ in it alone are one op, unless one
    side has the other's very name.
    """
    names = {taken.op for taken in asked} & {taken.op for taken in given}
    by_name: dict[tuple[str, int], int] = {}
    for index, key in enumerate(_numbered(_key(taken.op, names) for taken in asked)):
        by_name[key] = index
    pairs = []
    for index, key in enumerate(_numbered(_key(taken.op, names) for taken in given)):
        if key in by_name:
            pairs.append((by_name[key], index))
    return pairs


def _ops_of(pairs: Sequence[tuple[int, int]], asked: Sequence[Taken], given: Sequence[Taken]) -> int:
    """How many ops the pairs are of. Several of one side may go by one name on the other."""
    return min(len({asked[left].op for left, _ in pairs}), len({given[right].op for _, right in pairs}))


def _key(op: str, known: set[str]) -> str:
    return op if op in known or "/" not in op else plain_name(op)


def _numbered(names: Iterable[str]) -> Iterable[tuple[str, int]]:
    seen: Counter[str] = Counter()
    for name in names:
        yield name, seen[name]
        seen[name] += 1


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most of `pairs`, in order, whose first numbers only rise (patience sorting; Schensted, 1961)."""
    last_of: list[int] = []  # of the best sequence of each length, the index of its last pair
    lasts: list[int] = []  # and the number there
    previous: list[int] = []
    for index, (number, _) in enumerate(pairs):
        length = bisect_left(lasts, number)
        previous.append(last_of[length - 1] if length else -1)
        if length == len(lasts):
            lasts.append(number)
            last_of.append(index)
        else:
            lasts[length], last_of[length] = number, index
    found = []
    index = last_of[-1] if last_of else -1
    while index >= 0:
        found.append(pairs[index])
        index = previous[index]
    return found[::-1]


def _program_anchors(
    predicted: Timeline, given: Sequence[Taken], measured: Timeline, first: int, end: int
) -> list[tuple[int, float]]:
    """Where the memory of a compiled step is taken and given back."""
    block = max(given, key=lambda taken: taken.bytes, default=None)
    if block is None or not predicted.spans:
        return []
    anchors: list[tuple[int, float]] = [(block.position - first, min(span.start for span in predicted.spans))]
    over = next((tick for tick, op in zip(predicted.ticks, predicted.op_index, strict=True)
                 if predicted.ops[op] == END_OF_STEP), None)  # fmt: skip
    for position in range(block.position + 1, end):
        if measured.live_bytes[position - 1] - measured.live_bytes[position] == block.bytes and over is not None:
            anchors.append((position - first, over))
            break
    return anchors


def _spread(anchors: Sequence[tuple[int, float]], count: int, start: float, end: float) -> list[float]:
    """A tick for each of `count` events: those of the anchors, and between two anchors even steps."""
    ticks: list[float] = []
    known = [(-1, start), *anchors, (count, end)]
    for (left, low), (right, high) in pairwise(known):
        ticks += [low + (high - low) * (event - left) / (right - left) for event in range(left + 1, right)]
        if right < count:
            ticks.append(high)
    return ticks


def _differences(
    asked: Sequence[Taken], given: Sequence[Taken], pairs: Sequence[tuple[int, int]], predicted: Timeline
) -> tuple[OpDifference, ...]:
    if not pairs:
        return ()
    found = []
    for left, right in pairs:
        mine, theirs = asked[left], given[right]
        if mine.bytes != theirs.bytes:
            tick = predicted.ticks[mine.position]
            found.append(OpDifference(mine.op, tick, mine.bytes, theirs.bytes, mine.live_bytes, theirs.live_bytes))
    known = {left for left, _ in pairs}
    for index, mine in enumerate(asked):
        if index not in known:
            found.append(OpDifference(mine.op, predicted.ticks[mine.position], mine.bytes, None, mine.live_bytes, None))
    known = {right for _, right in pairs}
    for index, theirs in enumerate(given):
        if index not in known:
            found.append(OpDifference(theirs.op, None, None, theirs.bytes, None, theirs.live_bytes))
    return tuple(sorted(found, key=lambda one: (-abs(one.difference_bytes), one.op)))
