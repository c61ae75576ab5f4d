"""Events played through an allocator: peaks, what is alive there, and the curve."""

from __future__ import annotations

import random

import pytest

from tensorboard_plugin_memest.estimation.allocator import BfcAllocator
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.replay import Memory, resident_bytes
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.timeline import Span
from tensorboard_plugin_memest.memory.whose import Whose

KIB = 1024


def tag(name: str, category: Category = Category.TEMPORARIES) -> Tag:
    return Tag("dense", name, category, "made", None, (1,), "float32")


def made(buffer: Buffer, op: str) -> Event:
    return Event(ALLOCATE, buffer, op, tag(op))


def freed(buffer: Buffer, op: str) -> Event:
    return Event(FREE, buffer, op)


A, B, C = Buffer(1000), Buffer(300), Buffer(5)


def test_the_peak_is_what_is_held_at_once_rounding_included():
    played = Memory(BfcAllocator()).play(
        [made(A, "a"), made(B, "b"), freed(A, "b"), made(C, "c"), freed(B, "c"), freed(C, "c")]
    )
    assert played.peak_bytes == 1024 + 512
    assert played.requested_peak_bytes == 1000 + 300
    assert played.peak_op == "b"
    assert [(item.name, item.requested_bytes, item.bytes) for item in played.live_at_peak] == [
        ("a", 1000, 1024),
        ("b", 300, 512),
    ]


def test_the_curve_has_a_point_for_each_change():
    played = Memory(BfcAllocator()).play([made(A, "a"), made(B, "b"), freed(A, "c")], [("forward", 0, 2)])
    curve = played.timeline
    assert curve.unit == "op"
    assert list(curve.ticks) == [0, 1, 2, 3]
    assert list(curve.live_bytes) == [0, 1024, 1536, 512]
    assert [curve.op_at(position) for position in range(4)] == ["(start)", "a", "b", "c"]
    assert curve.spans == (Span("forward", 0, 2),)


def test_a_phase_begins_with_what_the_one_before_left():
    memory = Memory(BfcAllocator())
    memory.play([made(A, "a")])
    played = memory.play([made(B, "b"), freed(B, "b")])
    assert played.peak_bytes == 1024 + 512
    assert {item.name for item in played.live_at_peak} == {"a", "b"}
    assert memory.in_use == 1024


def test_a_phase_that_only_falls_peaks_at_its_start():
    memory = Memory(BfcAllocator())
    memory.play([made(A, "a"), made(B, "b")])
    played = memory.play([freed(A, "x"), freed(B, "x")])
    assert (played.peak_bytes, played.peak_op) == (1536, "(start)")
    assert sum(item.bytes for item in played.live_at_peak) == 1536


def test_a_buffer_is_what_it_was_last_said_to_be():
    renamed = Event(RELABEL, A, "update", tag("weight", Category.WEIGHTS))
    later = Event(RELABEL, A, "later", tag("late"))
    played = Memory(BfcAllocator()).play([made(A, "a"), renamed, made(B, "b"), later])
    # At the peak, when b was made, it was a weight; what it became later does not matter.
    assert [(item.name, item.category) for item in played.live_at_peak] == [
        ("weight", Category.WEIGHTS),
        ("b", Category.TEMPORARIES),
    ]


def test_unsplit_chunks_are_counted_whole_and_shown_with_their_item():
    big = Buffer(1300 * KIB)
    played = Memory(BfcAllocator()).play([made(big, "a")])
    assert (played.peak_bytes, played.requested_peak_bytes) == (2048 * KIB, 1300 * KIB)
    assert [item.bytes for item in played.live_at_peak] == [2048 * KIB]


def test_resident_bytes_round_each_buffer():
    assert resident_bytes([Buffer(1), Buffer(256), Buffer(257)]) == 256 + 256 + 512


def test_the_pool_holds_what_every_phase_before_needed():
    memory = Memory(BfcAllocator())
    large = Buffer(3000 * KIB)
    assert memory.play([made(large, "a"), freed(large, "b")]).pool_bytes == 4096 * KIB
    assert memory.play([made(A, "c")]).pool_bytes == 4096 * KIB


def test_what_is_renamed_stays_where_it_is():
    memory = Memory(BfcAllocator())
    memory.play([made(A, "a"), made(B, "b")])
    memory.rename({A: B, B: A})  # each goes by the other's name
    played = memory.play([freed(B, "c")])
    assert memory.in_use == 512
    memory.play([made(C, "c")])
    assert {item.name for item in memory.play([]).live_at_peak} == {"b", "c"}
    assert played.peak_bytes == 1024 + 512


def test_whose_the_tensors_of_each_op_are_is_kept():
    first = Tag("a", "one", Category.TEMPORARIES, "update temporary", "a/kernel", (1,), "float32")
    events = [Event(ALLOCATE, A, "one", first), made(B, "two"), freed(A, "three"), made(C, "two")]
    owners = Memory(BfcAllocator()).play(events).owners
    assert owners == {
        "one": Whose("a", Category.TEMPORARIES, "update temporary", "a/kernel"),
        "two": Whose("dense", Category.TEMPORARIES, "made", None),
    }


def test_whose_a_taken_over_tensor_is_at_the_peak_is_kept():
    taken = Tag("relu", "relu", Category.ACTIVATIONS, "Relu output", None, (1,), "float32")
    later = Tag("later", "later", Category.TEMPORARIES, "made", None, (1,), "float32")
    events = [
        made(A, "norm"),
        Event(RELABEL, A, "relu", taken),
        made(B, "b"),
        freed(B, "b"),
        # After the peak it no longer matters.
        Event(RELABEL, A, "later", later),
    ]
    assert Memory(BfcAllocator()).play(events).heirs == {"norm": taken.whose}


class _Counting(BfcAllocator):
    """Counts what is asked of it."""

    requests = 0

    def allocate(self, size: int) -> tuple[int, int]:
        self.requests += 1
        return super().allocate(size)


def _replacing(chance: random.Random) -> tuple[list[Event], list[Event], dict[Buffer, Buffer]]:
    """Variables, a step that puts each into new memory beside temporaries, and what goes by whose name next."""
    sizes = [chance.randrange(1, 900) * KIB for _ in range(4)]
    old, new = [Buffer(size) for size in sizes], [Buffer(size) for size in sizes]
    step = []
    for before, after in zip(old, new, strict=True):
        passing = Buffer(chance.randrange(1, 1500) * KIB, is_scratch=chance.random() < 0.3)
        step += [made(passing, "forward"), made(after, "update"), freed(before, "update"), freed(passing, "forward")]
    return [made(one, "built") for one in old], step, dict(zip(new, old, strict=True))


@pytest.mark.parametrize("with_scratch", [True, False])
@pytest.mark.parametrize("seed", range(12))  # of 3, 8 and 11 every third step is alike
@pytest.mark.parametrize("times", [2, 7, 8])
def test_what_is_played_again_is_what_playing_it_would_be(seed, times, with_scratch):
    before, step, renamed = _replacing(random.Random(seed))
    plain, again = (Memory(BfcAllocator(), with_scratch=with_scratch) for _ in range(2))
    for memory in (plain, again):
        memory.peak_of(before)
        memory.peak_of(step)
    peaks = []
    for _ in range(times):
        plain.rename(renamed)
        peaks.append(plain.peak_of(step))
    assert [again.peak_again(step, renamed) for _ in range(times)] == peaks
    # And what comes later finds memory as it would have been left.
    later = [made(Buffer(size * KIB), "later") for size in (3, 700, 50, 1100)]
    for memory in (plain, again):
        memory.rename(renamed)
    assert plain.play(later) == again.play(later)


def test_what_does_the_same_again_is_not_played():
    allocator, step = _Counting(), [made(A, "a"), made(B, "b"), freed(A, "c"), freed(B, "d")]
    memory = Memory(allocator)
    memory.peak_of(step)
    assert [memory.peak_again(step, {}) for _ in range(5)] == [1536] * 5
    assert allocator.requests == 4
