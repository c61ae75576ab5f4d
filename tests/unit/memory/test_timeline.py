"""Curves, and that thinning them loses no peak."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.memory.timeline import Span, Timeline
from tests.strategies import timelines


def curve(levels: list[int]) -> Timeline:
    return Timeline("op", list(range(len(levels))), levels, [0] * len(levels), ["op"])


def test_peak_and_the_op_at_it():
    timeline = Timeline("op", [0, 1, 5], [3, 2**40, 2**40], [1, 0, 1], ["first", "second"])
    assert timeline.peak_bytes == 2**40
    assert timeline.peak_position == 1
    assert timeline.op_at(1) == "first"
    assert timeline.op_at(2) == "second"


def test_of_no_event():
    timeline = curve([])
    assert (len(timeline), timeline.peak_bytes, timeline.peak_position) == (0, 0, None)
    assert timeline.decimated(4) == timeline


def test_columns_of_different_lengths():
    with pytest.raises(ValueError, match="not 2, 1 and 1"):
        Timeline("op", [0, 1], [1], [0], ["op"])


@pytest.mark.parametrize("points", [3, 0, -1])
def test_too_few_points(points):
    with pytest.raises(ValueError, match=f"not {points}"):
        curve([1] * 9).decimated(points)


def test_a_spike_of_one_event_survives():
    levels = [10] * 5000
    levels[3217] = 99
    levels[1001] = 2
    thinned = curve(levels).decimated(50)
    assert (max(thinned.live_bytes), thinned.ticks[thinned.live_bytes.index(99)]) == (99, 3217)
    assert (min(thinned.live_bytes), thinned.ticks[thinned.live_bytes.index(2)]) == (2, 1001)
    assert len(thinned) <= 50


def test_ops_that_are_left_keep_their_names():
    levels = [1, 5, 1, 1, 9, 1, 1, 1, 1, 2]
    timeline = Timeline("op", list(range(10)), levels, list(range(10)), [f"op{n}" for n in range(10)])
    thinned = timeline.decimated(4)
    assert thinned.op_at(thinned.live_bytes.index(9)) == "op4"
    assert len(thinned.ops) == len(thinned)


@given(timelines(max_size=200), st.integers(4, 40))
def test_decimation_keeps_peaks_order_and_ends(timeline, points):
    thinned = timeline.decimated(points)
    events = list(
        zip(timeline.ticks, timeline.live_bytes, (timeline.op_at(n) for n in range(len(timeline))), strict=True)
    )
    kept = list(zip(thinned.ticks, thinned.live_bytes, (thinned.op_at(n) for n in range(len(thinned))), strict=True))
    assert len(kept) <= points
    assert thinned.peak_bytes == timeline.peak_bytes
    assert min(thinned.live_bytes, default=0) == min(timeline.live_bytes, default=0)
    assert kept[:1] == events[:1]
    assert kept[-1:] == events[-1:]
    position = 0
    for event in kept:
        position = events.index(event, position) + 1
    assert (thinned.unit, thinned.spans) == (timeline.unit, timeline.spans)


@given(timelines(max_size=200), st.integers(4, 40), st.data())
def test_a_window_is_thinned_as_if_it_were_all_there_is(timeline, points, data):
    first, last = sorted(data.draw(st.tuples(st.integers(0, 2**53), st.integers(0, 2**53))))
    kept = timeline.thinned(points, first, last)
    inside = [position for position in range(len(timeline)) if first <= timeline.ticks[position] <= last]
    shown = [position for position in kept if position in inside]
    assert len(shown) <= points
    levels = [timeline.live_bytes[position] for position in inside]
    assert {max(levels, default=0), min(levels, default=0)} <= {0, *(timeline.live_bytes[n] for n in shown)}
    if len(inside) <= points:
        assert shown == inside
    # What the window begins with is what the event before it left; the line goes on to the event after it.
    before = [position for position in range(len(timeline)) if timeline.ticks[position] < first]
    after = [position for position in range(len(timeline)) if timeline.ticks[position] > last]
    assert [position for position in kept if position not in inside] == [*before[-1:], *after[:1]]


def test_each_part_of_the_time_keeps_its_first_last_lowest_and_highest():
    # Nine of ten events lie in the first tenth of the time: the rest is no less worth drawing.
    ticks = [*range(900), *range(1000, 10_000, 90)]
    levels = [(n * 7919) % 1000 for n in range(len(ticks))]
    timeline = Timeline("ns", ticks, levels, [0] * len(ticks), ["op"])
    kept = timeline.thinned(40)
    for part in range(10):
        begin, end = ticks[-1] * part // 10, ticks[-1] * (part + 1) // 10
        inside = [n for n, tick in enumerate(ticks) if begin + 1 < tick < end - 1]
        whole = {n for n, tick in enumerate(ticks) if begin - 90 <= tick <= end + 90}
        shown = [levels[n] for n in kept if n in whole]
        assert max(shown) >= max(levels[n] for n in inside)
        assert min(shown) <= min(levels[n] for n in inside)


@given(timelines())
def test_dict_round_trip(timeline):
    assert Timeline.from_dict(timeline.to_dict()) == timeline


def test_spans_are_equal_however_they_were_given():
    spans = [Span("forward", 0, 1)]
    given_list, given_tuple = (Timeline("op", [0], [1], [0], ["op"], kind(spans)) for kind in (list, tuple))
    assert given_list == given_tuple
    assert Timeline("op", [], [], [], []) == Timeline.from_dict(Timeline("op", [], [], [], []).to_dict())


def test_span_round_trip():
    span = Span("step 3", 2**33, 2**34 + 1)
    assert Span.from_dict(span.to_dict()) == span
