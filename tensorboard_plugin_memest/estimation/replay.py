"""Events and an allocator make a phase: its curve, its peak, and what is alive there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tensorboard_plugin_memest.estimation.allocator import BfcAllocator, Layout, rounded
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.small import SHARED
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.memory.allocations import Allocations
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.timeline import Span, Timeline
from tensorboard_plugin_memest.memory.whose import Whose


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


@dataclass
class _Again:
    """Events that are played again and again.

    Attributes:
        events: the events.
        renamed: what is renamed before each time.
        looks: what memory looked like before each time: its layout, and where what was renamed lies.
        peaks: the peak of each time.
        period: after so many times memory looks as before; 0 where that is not known.
        left_out: how many times have not been played, because memory looked like that.
    """

    events: Sequence[Event]
    renamed: Mapping[Buffer, Buffer]
    looks: list[tuple[Layout, list[int]]] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    period: int = 0
    left_out: int = 0


class Memory:
    """A device's memory through the phases of a run; what one phase leaves behind, the next begins with."""

    def __init__(self, allocator: BfcAllocator, *, with_scratch: bool = True) -> None:
        """Memory in which nothing is yet.

        Args:
            allocator: gives it.
            with_scratch: whether `peak_of` plays what kernels use for themselves, too.
        """
        self._allocator = allocator
        self._with_scratch = with_scratch
        self._places: dict[Buffer, int] = {}  # addresses
        self._tags: dict[Buffer, Tag] = {}
        self._beside = 0
        self._again: _Again | None = None

    @property
    def in_use(self) -> int:
        """Bytes in use now, without what is there beside."""
        return self._allocator.in_use - self._beside

    def occupy(self, sizes: Iterable[int]) -> None:
        """Puts tensors of `sizes` beside the run: they take chunks for good, but are not counted."""
        self._catch_up()
        for size in sizes:
            self._beside += self._allocator.allocate(size)[1]

    def rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        """What the keys of `renamed` hold, their values hold from now on, where it is and as it is."""
        self._catch_up()
        self._rename(renamed)

    def peak_of(self, events: Sequence[Event]) -> int:
        """Plays `events` and returns the peak in bytes only."""
        self._catch_up()
        return self._peak_of(events)

    def peak_again(self, events: Sequence[Event], renamed: Mapping[Buffer, Buffer]) -> int:
        """Renames what is held and plays `events`, as `rename` and `peak_of` do, for what has been played before.

        Where memory looks as it did before an earlier time, it will do what it did from then on, so that is not played.
        """
        again = self._again
        if again is None or again.events is not events:
            self._catch_up()
            again = self._again = _Again(events, renamed)
        if not again.period:
            before = self._places.copy(), self._tags.copy()
            self._rename(renamed)
            looks = self._allocator.layout, [self._places[buffer] for buffer in renamed.values()]
            if looks not in again.looks:
                again.looks.append(looks)
                again.peaks.append(self._peak_of(events))
                return again.peaks[-1]
            again.period = len(again.looks) - again.looks.index(looks)
            self._places, self._tags = before
        again.left_out += 1
        return again.peaks[(again.left_out - 1) % again.period - again.period]

    def _catch_up(self) -> None:
        """Plays what `peak_again` left out, as far as memory would not look as it does."""
        again, self._again = self._again, None
        if again is not None and again.period:
            for _ in range(again.left_out % again.period):
                self._rename(again.renamed)
                self._peak_of(again.events)

    def _rename(self, renamed: Mapping[Buffer, Buffer]) -> None:
        # All are taken out before any is put in: two may change places.
        places = {new: self._places.pop(old) for old, new in renamed.items()}
        tags = {new: self._tags.pop(old) for old, new in renamed.items()}
        self._places.update(places)
        self._tags.update(tags)

    def _peak_of(self, events: Sequence[Event]) -> int:
        self._allocator.reset_peak()
        # What `_apply` does, millions of times: without a call for each event.
        places, tags, with_scratch = self._places, self._tags, self._with_scratch
        allocate, free = self._allocator.allocate, self._allocator.free
        for event in events:
            buffer = event.buffer
            if not with_scratch and buffer.is_scratch:
                continue
            kind = event.kind
            if kind == FREE:
                free(places.pop(buffer))
                del tags[buffer]
                continue
            if kind == ALLOCATE:
                places[buffer] = allocate(buffer.bytes)[0]
            tags[buffer] = event.tag  # type: ignore[assignment]  # only what is freed has none
        return self._allocator.peak - self._beside

    def play(self, events: Sequence[Event], spans: Sequence[tuple[str, int, int]] = ()) -> Played:
        """Plays `events`.

        Args:
            events: what happens.
            spans: (name, first event, event after the last) of stretches worth naming.
        """
        self._catch_up()
        there = _There()
        for buffer, tag in self._tags.items():
            there.add(buffer, tag, self._bytes_of(buffer), 0)
        ticks, live, ops = [0], [self.in_use], [0]
        op_numbers = {"(start)": 0}
        peak, peak_op = self.in_use, "(start)"
        requested = requested_peak = sum(buffer.bytes for buffer in self._places)
        owners: dict[str, Whose] = {}
        heirs, taken_over, made_by = dict[str, Whose](), dict[str, Whose](), dict[Buffer, str]()
        for number, event in enumerate(events):
            self._apply(event.kind, event.buffer, event.tag)
            if event.kind != RELABEL:
                requested += event.buffer.bytes if event.kind == ALLOCATE else -event.buffer.bytes
            if event.kind == ALLOCATE and event.tag is not None and event.op not in owners:
                owners[event.op] = event.tag.whose
                made_by[event.buffer] = event.op
            elif event.kind == RELABEL and event.tag is not None and event.buffer in made_by:
                taken_over[made_by[event.buffer]] = event.tag.whose
            requested_peak = max(requested_peak, requested)
            if self.in_use > peak:
                peak, peak_op = self.in_use, event.op
                heirs.update(taken_over)
                taken_over.clear()
            if self.in_use != live[-1]:
                ticks.append(number + 1)
                live.append(self.in_use)
                ops.append(op_numbers.setdefault(event.op, len(op_numbers)))
                position = len(ticks) - 1
            else:
                # What changes no bytes is seen from the next change on.
                position = len(ticks)
            if event.kind != ALLOCATE:
                there.close(event.buffer, position)
            if event.tag is not None:
                there.add(event.buffer, event.tag, self._bytes_of(event.buffer), position)
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

    def _apply(self, kind: str, buffer: Buffer, tag: Tag | None) -> None:
        if kind == FREE:
            self._allocator.free(self._places.pop(buffer))
            del self._tags[buffer]
            return
        assert tag is not None
        if kind == ALLOCATE:
            self._places[buffer], _ = self._allocator.allocate(buffer.bytes)
        self._tags[buffer] = tag

    def _bytes_of(self, buffer: Buffer) -> int:
        return self._allocator.size_of(self._places[buffer])


class _There:
    """Keeps from when to when each buffer is there, and as what, in positions of a timeline."""

    def __init__(self) -> None:
        self._open: dict[Buffer | Tag, tuple[Item, int]] = {}
        self._closed: list[tuple[Item, int, int]] = []

    def close(self, buffer: Buffer, position: int) -> None:
        """What `buffer` held is gone from `position` on."""
        item, begin = self._open.pop(buffer)
        self._closed.append((item, begin, position))

    def add(self, buffer: Buffer, tag: Tag, held_bytes: int, position: int) -> None:
        """`buffer`, for which the allocator holds `held_bytes`, holds something from `position` on."""
        item = tag.item(buffer.bytes, held_bytes)
        if tag not in SHARED:
            self._open[buffer] = item, position
            return
        # Small tensors that are all the same are one item, which grows; nothing ever frees them.
        before = self._open.get(tag)
        if before is not None:
            known, begin = before
            if begin < position:
                self._closed.append((known, begin, position))
            item = tag.item(known.requested_bytes + item.requested_bytes, known.bytes + item.bytes)
        self._open[tag] = item, position

    def until(self, end: int) -> Allocations:
        """Everything that was there, if the timeline ends with `end` events."""
        return Allocations.of([*self._closed, *((item, begin, end) for item, begin in self._open.values())])


def resident_bytes(buffers: Sequence[Buffer]) -> int:
    """Bytes of `buffers` with the allocator's rounding, slack of unsplit chunks left out."""
    return sum(rounded(buffer.bytes) for buffer in buffers)
