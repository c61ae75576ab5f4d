"""Events and an allocator make a phase: its curve, its peak, and what is alive there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tensorboard_plugin_memest.estimation.allocator import BfcAllocator, rounded
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.small import SHARED
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.memory.allocations import Allocations
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.timeline import Span, Timeline
from tensorboard_plugin_memest.memory.whose import Whose


class Held(NamedTuple):
    """A buffer's chunk: where it is, how many bytes it has, and what it holds."""

    address: int
    bytes: int
    tag: Tag


@dataclass(frozen=True)
class Played:
    """What one stretch of events did.

    Attributes:
        peak_bytes: highest bytes in use, chunks counted whole.
        requested_peak_bytes: highest sum of what was asked for.
        peak_op: the op at which the peak was reached first.
        live_at_peak: everything alive then, largest first.
        timeline: bytes in use after each event that changed them.
        owners: whose the first tensor is that each op allocates.
        heirs: whose that tensor is at the peak, for each op whose memory another op has taken over by then.
        allocations: every buffer of the timeline.
        pool_bytes: bytes of the pool that it and everything before it needed, gaps between chunks included.
    """

    peak_bytes: int
    requested_peak_bytes: int
    peak_op: str
    live_at_peak: tuple[Item, ...]
    timeline: Timeline
    pool_bytes: int
    owners: Mapping[str, Whose]
    heirs: Mapping[str, Whose]
    allocations: Allocations

    def phase(self, name: str) -> Phase:
        """The phase `name`, if this is the only way in which it can go and no kernel used scratch."""
        return Phase(
            name=name,
            peak_bytes=self.peak_bytes,
            requested_peak_bytes=self.requested_peak_bytes,
            peak_without_scratch_bytes=self.peak_bytes,
            peak_range=(self.peak_bytes, self.peak_bytes),
            peak_op=self.peak_op,
            live_at_peak=self.live_at_peak,
            timeline=self.timeline,
            pool_bytes=self.pool_bytes,
            owners=self.owners,
            heirs=self.heirs,
            allocations=self.allocations,
        )


class Memory:
    """A device's memory through the phases of a run; what one phase leaves behind, the next begins with."""

    def __init__(self, allocator: BfcAllocator) -> None:
        self._allocator = allocator
        self._held: dict[Buffer, Held] = {}
        self._requested = 0
        self._beside = 0

    @property
    def in_use(self) -> int:
        """Bytes in use now, without what is there beside."""
        return self._allocator.in_use - self._beside

    def occupy(self, sizes: Iterable[int]) -> None:
        """Puts tensors of `sizes` beside the run: they take chunks for good, but are not counted."""
        for size in sizes:
            self._beside += self._allocator.allocate(size)[1]

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        """What the keys of `renamed` hold, their values hold from now on, where it is and as it is."""
        moved = {new: self._held.pop(old) for old, new in renamed.items()}
        self._held.update(moved)

    def peak_of(self, events: Sequence[Event]) -> int:
        """Plays `events` and returns the peak in bytes only."""
        self._allocator.reset_peak()
        apply = self._apply
        for event in events:
            apply(event)
        return self._allocator.peak - self._beside

    def play(self, events: Sequence[Event], spans: Sequence[tuple[str, int, int]] = ()) -> Played:
        """Plays `events`.

        Args:
            events: what happens.
            spans: (name, first event, event after the last) of stretches worth naming.
        """
        there = _There(self._held)
        ticks, live, ops = [0], [self.in_use], [0]
        op_numbers = {"(start)": 0}
        peak, peak_op, requested_peak = self.in_use, "(start)", self._requested
        owners: dict[str, Whose] = {}
        heirs, taken_over, made_by = dict[str, Whose](), dict[str, Whose](), dict[Buffer, str]()
        for number, event in enumerate(events):
            self._apply(event)
            if event.kind == ALLOCATE and event.tag is not None and event.op not in owners:
                owners[event.op] = event.tag.whose
                made_by[event.buffer] = event.op
            elif event.kind == RELABEL and event.tag is not None and event.buffer in made_by:
                taken_over[made_by[event.buffer]] = event.tag.whose
            requested_peak = max(requested_peak, self._requested)
            if self.in_use > peak:
                peak, peak_op = self.in_use, event.op
                heirs.update(taken_over)
                taken_over.clear()
            if self.in_use != live[-1]:
                ticks.append(number + 1)
                live.append(self.in_use)
                ops.append(op_numbers.setdefault(event.op, len(op_numbers)))
                there.follow(event, self._held, len(ticks) - 1)
            else:
                # What changes no bytes is seen from the next change on.
                there.follow(event, self._held, len(ticks))
        allocations = there.until(len(ticks))
        return Played(
            peak_bytes=peak,
            requested_peak_bytes=requested_peak,
            peak_op=peak_op,
            live_at_peak=allocations.items_at(live.index(peak)),
            timeline=Timeline("op", ticks, live, ops, list(op_numbers), [Span(*span) for span in spans]),
            pool_bytes=self._allocator.pool_bytes,
            owners=owners,
            heirs=heirs,
            allocations=allocations,
        )

    def _apply(self, event: Event) -> None:
        kind, buffer = event.kind, event.buffer
        if kind == FREE:
            self._allocator.free(self._held.pop(buffer).address)
            self._requested -= buffer.bytes
            return
        assert event.tag is not None
        if kind == ALLOCATE:
            address, size = self._allocator.allocate(buffer.bytes)
            self._requested += buffer.bytes
        else:
            address, size, _ = self._held[buffer]
        self._held[buffer] = Held(address, size, event.tag)


class _There:
    """Keeps from when to when each buffer is there, and as what, in positions of a timeline."""

    def __init__(self, held: Mapping[Buffer, Held]) -> None:
        self._open: dict[Buffer | Tag, tuple[Item, int]] = {}
        self._closed: list[tuple[Item, int, int]] = []
        for buffer, one in held.items():
            self._add(buffer, one, 0)

    def follow(self, event: Event, held: Mapping[Buffer, Held], position: int) -> None:
        """Takes in an event that was applied: what it does shows from `position` on."""
        if event.kind != ALLOCATE:
            item, begin = self._open.pop(event.buffer)
            self._closed.append((item, begin, position))
        if event.kind != FREE:
            self._add(event.buffer, held[event.buffer], position)

    def _add(self, buffer: Buffer, held: Held, position: int) -> None:
        item = _item(buffer, held)
        if held.tag not in SHARED:
            self._open[buffer] = item, position
            return
        # Small tensors that are all the same are one item, which grows; nothing ever frees them.
        before = self._open.get(held.tag)
        if before is not None:
            known, begin = before
            if begin < position:
                self._closed.append((known, begin, position))
            item = held.tag.item(known.requested_bytes + item.requested_bytes, known.bytes + item.bytes)
        self._open[held.tag] = item, position

    def until(self, end: int) -> Allocations:
        """Everything that was there, if the timeline ends with `end` events."""
        return Allocations.of([*self._closed, *((item, begin, end) for item, begin in self._open.values())])


def _item(buffer: Buffer, held: Held) -> Item:
    return held.tag.item(buffer.bytes, held.bytes)


def resident_bytes(buffers: Sequence[Buffer]) -> int:
    """Bytes of `buffers` with the allocator's rounding, slack of unsplit chunks left out."""
    return sum(rounded(buffer.bytes) for buffer in buffers)
