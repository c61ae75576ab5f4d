"""What is alive at one moment of a profile, and what it is for.

Of what was allocated inside the profile's window everything is known but its purpose; of what was allocated before,
only how much it is. Nothing here looks an op up in the model: names, kinds of use and the times between which a tensor
lived are all there is, and where they do not tell, the category is `unattributed`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.allocator import rounded
from tensorboard_plugin_memest.measure.wire import Integers
from tensorboard_plugin_memest.measure.xplane import Booleans, MemoryEvents
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.op_names import NO_OP, short_name, without_counter
from tensorboard_plugin_memest.memory.timeline import Span

BEFORE = "allocated before the profile"
LOST = "not told apart, because the profile lacks events"
COPY = "variable copy"
BEFORE_LAYER = "(before the profile)"
STEP_LAYER = "(step)"

_SHAPE = re.compile(r"\[(\d+(?:,\d+)*)?\]")


@dataclass(frozen=True)
class Lives:
    """Which allocation each deallocation ends.

    Attributes:
        freed_at: for each event that allocates, the position of the event that frees it; the number of events where it
            outlives the profile. Without meaning for deallocations.
        freed: for each event that frees, the position of the allocation; -1 where that was before the profile. Without
            meaning for allocations.
    """

    freed_at: Integers
    freed: Integers


def find_lives(events: MemoryEvents) -> Lives:
    """Pairs allocations and deallocations by address."""
    count = len(events)
    freed_at = [count] * count
    freed = [-1] * count
    open_at: dict[int, int] = {}
    for position, (allocates, address) in enumerate(
        zip(events.allocates.tolist(), events.address.tolist(), strict=True)
    ):
        if allocates:
            open_at[address] = position
        else:
            start = open_at.pop(address, -1)
            if start >= 0:
                freed_at[start] = position
                freed[position] = start
    return Lives(np.array(freed_at, np.int64), np.array(freed, np.int64))


def scratch(events: MemoryEvents, lives: Lives) -> Booleans:
    """Which events allocate what a kernel takes for itself while it runs.

    That is a temporary buffer which is gone before another op allocates anything in the kernel's thread. Others outlive
    their kernels: the elements of a list that an op makes, and the new buffer of a variable that an op assigns.
    """
    count = len(events)
    other_begins = np.full(count, count, np.int64)
    allocations = np.flatnonzero(events.allocates)
    for thread in np.unique(events.thread[allocations]).tolist():
        own = allocations[events.thread[allocations] == thread]
        ops = events.op[own]
        begins = np.append(np.flatnonzero(ops[1:] != ops[:-1]) + 1, len(own))
        following = begins[np.searchsorted(begins, np.arange(len(own)), side="right")]
        other_begins[own] = np.append(own, count)[following]
    temporary = np.array([text == "temp" for text in events.texts])[events.region]
    found: Booleans = events.allocates & temporary & (lives.freed_at < other_begins)
    return found


def as_held(variables: Iterable[Item], events: MemoryEvents, lives: Lives, before_bytes: int) -> list[Item]:
    """`variables` with the bytes of their chunks in this run, as far as the profile tells.

    How large a chunk is, a profile tells when it is freed. Of the others, what the estimate says of it is kept if there
    is room for it in the `before_bytes` that were in use at the beginning; otherwise only what is asked for is counted,
    rounded, as what chunks have beyond that differs from run to run.
    """
    chunks: dict[int, list[int]] = {}
    for end in np.flatnonzero(~events.allocates & (lives.freed < 0))[::-1].tolist():
        chunks.setdefault(int(events.requested_bytes[end]), []).append(int(events.bytes[end]))
    sizes = [
        (item, chunks[item.requested_bytes].pop() if chunks.get(item.requested_bytes) else None) for item in variables
    ]
    estimated = [item if size is None else replace(item, bytes=size) for item, size in sizes]
    if sum(item.bytes for item in estimated) <= before_bytes:
        return estimated
    return [replace(item, bytes=rounded(item.requested_bytes) if size is None else size) for item, size in sizes]


def match_before(variables: Sequence[Item], before_bytes: int) -> list[Item]:
    """Those of `variables` that were there when the profile started, as far as sizes tell.

    Variables come and go in groups (all weights, all of an optimizer's momentums), weights first. A group is taken if
    what was in use leaves room for all of it.
    """
    groups: dict[tuple[Category, str], list[Item]] = {}
    for item in sorted(variables, key=lambda item: item.category is not Category.WEIGHTS):
        groups.setdefault((item.category, item.role), []).append(item)
    matched: list[Item] = []
    left = before_bytes
    for (category, _), group in groups.items():
        size = sum(item.bytes for item in group)
        if size <= left:
            matched += group
            left -= size
        elif category is Category.WEIGHTS:
            break
    return matched


def with_rest(matched: Iterable[Item], total: int) -> tuple[Item, ...]:
    """`matched` and one unattributed item for what is missing to `total` bytes, largest first."""
    items = list(matched)
    rest = total - sum(item.bytes for item in items)
    if rest:
        items.append(Item(BEFORE_LAYER, BEFORE, Category.UNATTRIBUTED, BEFORE, None, None, None, rest, rest))
    return tuple(sorted(items, key=lambda item: -item.bytes))


def alive_at(
    position: int,
    events: MemoryEvents,
    lives: Lives,
    steps: Sequence[Span],
    backward_ns: Integers,
    before: Sequence[Item],
    weight_shapes: Collection[tuple[int, ...] | None] = (),
) -> tuple[Item, ...]:
    """Everything alive just after the event at `position`, largest first; the bytes add up to those in use.

    Args:
        position: index of the event.
        events: the allocator's events.
        lives: their pairs.
        steps: the training steps, in order.
        backward_ns: when ops of the backward pass began, sorted.
        before: the variables that `match_before` found.
        weight_shapes: shapes of the model's weights, which tell their gradients from other tensors of the backward
            pass.
    """
    until = np.arange(position + 1)
    allocates = events.allocates[: position + 1]
    inside = until[allocates & (lives.freed_at[: position + 1] > position)]
    ended_before = until[~allocates & (lives.freed[: position + 1] < 0)]
    # Whatever of the bytes in use was not allocated in the window was there before. Counting it so can not count
    # anything twice, whatever became of single variables.
    left = int(events.in_use[position]) - int(events.bytes[inside].sum())
    if left < 0:
        in_use = int(events.in_use[position])
        return (Item(BEFORE_LAYER, LOST, Category.UNATTRIBUTED, LOST, None, None, None, in_use, in_use),)
    ended = Counter(events.requested_bytes[ended_before].tolist())

    judge = Judge(events, lives, steps, backward_ns, weight_shapes)
    staying = list(before)
    items = []
    for start in inside.tolist():
        variable = _moved_variable(int(events.requested_bytes[start]), judge.outlives_its_step(start), staying, ended)
        if variable is not None:
            items.append(replace(variable, bytes=int(events.bytes[start])))
        else:
            items.append(judge.item(start))
    return tuple(sorted([*items, *with_rest(_fitting(staying, left, ended), left)], key=lambda item: -item.bytes))


def _moved_variable(size: int, stays: bool, staying: list[Item], ended: Counter[int]) -> Item | None:
    """The variable that moved into a tensor of `size` requested bytes, taken out of `staying`; None if none did.

    An update of a variable that someone still reads goes to a new buffer, and the old one is freed after the last
    read. So a tensor that stays after its step is the variable if one of its size was freed.
    """
    if not stays or not ended[size]:
        return None
    for index, item in enumerate(staying):
        if item.requested_bytes == size:
            ended[size] -= 1
            return staying.pop(index)
    return None


def _fitting(variables: Sequence[Item], left: int, ended: Counter[int]) -> list[Item]:
    """`variables` without as many as must have been freed to leave `left` bytes; those of a freed size go first."""
    excess = sum(item.bytes for item in variables) - left
    kept = []
    ended = ended.copy()
    for item in sorted(variables, key=lambda item: (not ended[item.requested_bytes], -item.bytes)):
        if excess > 0:
            excess -= item.bytes
        else:
            kept.append(item)
    return kept


class Judge:
    """Tells what tensors allocated in the window are for."""

    def __init__(
        self,
        events: MemoryEvents,
        lives: Lives,
        steps: Sequence[Span],
        backward_ns: Integers,
        weight_shapes: Collection[tuple[int, ...] | None],
    ) -> None:
        self._events = events
        self._lives = lives
        self._steps = steps
        self._step_starts = np.array([step.start for step in steps], np.int64)
        self._backward_ns = backward_ns
        self._weight_shapes = set(weight_shapes) - {None, ()}
        self._is_scratch = scratch(events, lives)

    def outlives_its_step(self, start: int) -> bool:
        """Whether the tensor that event `start` allocates is kept after its step.

        Where steps are unknown, that is only said of what an Assign op allocates.
        """
        step = self._step_of(start)
        if step is None:
            return "Assign" in self._op(start) if not self._steps else False
        return self._end_ns(start) > step.end

    def item(self, start: int) -> Item:
        """The tensor that event `start` allocates."""
        events = self._events
        op = self._op(start)
        shape = _shape(events.texts[events.shape[start]])
        layer = STEP_LAYER
        category, role = self._purpose(start, op, shape)
        if category is Category.INPUTS:
            layer = "(input)"
        return Item(
            layer=layer,
            name=op or NO_OP,
            category=category,
            role=role,
            variable=None,
            shape=shape,
            dtype=_dtype(int(events.dtype[start])),
            requested_bytes=int(events.requested_bytes[start]),
            bytes=int(events.bytes[start]),
        )

    def _purpose(self, start: int, op: str, shape: tuple[int, ...] | None) -> tuple[Category, str]:
        events = self._events
        kind = without_counter(op.rsplit("/", 1)[-1])
        output = f"{kind} output" if kind else "unnamed tensor"
        if self._is_scratch[start]:
            return Category.WORKSPACE, f"{kind} scratch" if kind else "scratch"
        if events.texts[events.region[start]] == "temp" and kind.startswith("Assign"):
            return Category.TEMPORARIES, COPY
        if events.texts[events.thread[start]].startswith("tf_data") or kind == "IteratorGetNext":
            return Category.INPUTS, output
        if "gradient_tape/" in op:
            if shape in self._weight_shapes:
                return Category.GRADIENTS, "gradient"
            return Category.TEMPORARIES, output
        step = self._step_of(start)
        if step is None or self._end_ns(start) > step.end or not op:
            return Category.UNATTRIBUTED, output
        return (Category.ACTIVATIONS if self._kept_for_backward(start, step) else Category.TEMPORARIES), output

    def _kept_for_backward(self, start: int, step: Span) -> bool:
        """Whether the backward pass of the step begins while the tensor lives."""
        first = int(np.searchsorted(self._backward_ns, step.start))
        if first == len(self._backward_ns):
            return False
        return int(self._events.time_ns[start]) < int(self._backward_ns[first]) < self._end_ns(start)

    def _op(self, start: int) -> str:
        return short_name(self._events.texts[self._events.op[start]])

    def _end_ns(self, start: int) -> int:
        end = int(self._lives.freed_at[start])
        return int(self._events.time_ns[end]) if end < len(self._events) else np.iinfo(np.int64).max

    def _step_of(self, start: int) -> Span | None:
        time_ns = int(self._events.time_ns[start])
        index = int(np.searchsorted(self._step_starts, time_ns, side="right")) - 1
        return self._steps[index] if index >= 0 and time_ns <= self._steps[index].end else None


def _shape(text: str) -> tuple[int, ...] | None:
    match = _SHAPE.fullmatch(text)
    if match is None:
        return None
    return tuple(int(dimension) for dimension in match[1].split(",")) if match[1] else ()


def _dtype(number: int) -> str | None:
    try:
        return str(tf.dtypes.as_dtype(number).name) if number else None
    except TypeError:
        return None
