"""A measured step on the predicted axis."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.memory.alignment import OpDifference, align
from tensorboard_plugin_memest.memory.timeline import END_OF_STEP, Span, Timeline


def curve(*events, unit="op", start=0, ticks=None, spans=()):
    """A timeline of (op, bytes taken) or, with less than 0, given back."""
    live, levels = start, []
    for _, change in events:
        live += change
        levels.append(live)
    ops = list(dict.fromkeys(op for op, _ in events))
    index = [ops.index(op) for op, _ in events]
    return Timeline(unit, list(range(len(events))) if ticks is None else ticks, levels, index, ops, spans)


PREDICTED = curve(
    ("(start)", 0), ("net_1/a/Relu", 100), ("net_1/b/Relu", 50), ("net_1/a/Relu", -100), ("adam/Square", 30), start=1000
)


def measured(*events, before=1500):
    return curve(*events, unit="ns", start=before, ticks=[10 * n for n in range(len(events))])


def test_ops_lie_where_the_prediction_has_them_and_the_rest_between():
    found = measured(
        ("lost", 0), ("net_1/a/Relu", 100), ("x", 7), ("x", -7), ("net_1/b/Relu", 64), ("adam/Square", 30), ("end", -94)
    )
    aligned = align(PREDICTED, found, Span("step 1", 0, 60), 1500)
    assert [round(tick, 3) for tick in aligned.timeline.ticks] == [0.5, 1, 1.333, 1.667, 2, 4, 4]
    assert aligned.timeline.live_bytes == found.live_bytes
    assert [aligned.timeline.op_at(n) for n in range(7)] == [found.op_at(n) for n in range(7)]
    assert aligned.beside_bytes == 500
    assert (aligned.predicted_ops, aligned.measured_ops, aligned.matched_ops, aligned.in_order) == (3, 4, 3, 3)
    assert aligned.differences == (
        OpDifference("net_1/b/Relu", 2, 50, 64, 1150, 1664),
        OpDifference("x", None, None, 7, None, 1607),
    )


def test_only_the_step_is_laid_out_and_what_was_in_use_before_it_counts():
    found = measured(("other", 400), ("net_1/a/Relu", 100), ("net_1/b/Relu", 50), ("adam/Square", 30))
    aligned = align(PREDICTED, found, Span("step 1", 10, 20), 1500)
    assert aligned.timeline.live_bytes == [2000, 2050]
    assert aligned.timeline.ticks == [1, 2]
    assert aligned.beside_bytes == 900


def test_the_number_of_the_root_scope_is_no_difference_but_that_of_a_layer_is():
    found = measured(("gradient_tape/net_7/a/Mul", 5), ("net_7/a_1/Relu", 100), ("net_7/b/Relu", 50))
    predicted = curve(("(start)", 0), ("gradient_tape/net_1/a/Mul", 5), ("net_1/a/Relu", 100), ("net_1/b/Relu", 50))
    aligned = align(predicted, found, Span("step", 0, 100), 1500)
    assert {one.op for one in aligned.differences} == {"net_1/a/Relu", "net_7/a_1/Relu"}
    assert aligned.matched_ops == 2


def test_an_op_that_takes_memory_twice_is_matched_in_order():
    predicted = curve(("(start)", 0), ("a/x", 10), ("a/x", 20), ("a/x", -30))
    aligned = align(predicted, measured(("a/x", 10), ("a/x", 24)), Span("step", 0, 100), 1500)
    assert aligned.differences == (OpDifference("a/x", 2, 20, 24, 30, 1534),)


def test_ops_in_another_order_are_matched_but_time_runs_one_way():
    predicted = curve(("(start)", 0), *((f"s/{name}", 10) for name in "abcdef"))
    aligned = align(predicted, measured(*((f"s/{name}", 10) for name in "abfcde")), Span("step", 0, 100), 1500)
    assert aligned.timeline.ticks == [1, 2, 2.5, 3, 4, 5]
    assert (aligned.matched_ops, aligned.in_order) == (6, 5)
    assert aligned.differences == ()


def test_the_block_of_a_compiled_step_lies_where_the_program_runs():
    predicted = curve(
        ("(start)", 0), ("x", 10), ("a", 100), ("b", 100), ("b", -100), ("a", -100), (END_OF_STEP, -5),
        spans=(Span("forward", 2, 4), Span("update", 4, 7)),
    )  # fmt: skip
    found = measured(("(no op)", 4), ("(no op)", 205), ("(no op)", 2), ("(no op)", -205), ("(no op)", -6))
    aligned = align(predicted, found, Span("step", 0, 100), 1500)
    assert aligned.timeline.ticks == [1, 2, 4, 6, 6]
    assert (aligned.measured_ops, aligned.matched_ops, aligned.differences) == (0, 0, ())


def test_nothing_cannot_be_laid_beside_anything():
    with pytest.raises(ValueError, match="5 predicted, 0 in step 9"):
        align(PREDICTED, measured(("x", 1)), Span("step 9", 500, 600), 0)
    with pytest.raises(ValueError, match="0 predicted, 1 in step 1"):
        align(curve(), measured(("x", 1)), Span("step 1", 0, 600), 0)


changes = st.lists(st.tuples(st.sampled_from(["s/a", "s/b", "s_1/a", "t", "(no op)"]), st.integers(-5, 5)), min_size=1)


@given(changes, changes)
def test_every_event_keeps_its_bytes_and_no_tick_goes_back(mine, theirs):
    predicted, found = curve(("(start)", 0), *mine, start=10**6), measured(*theirs)
    aligned = align(predicted, found, Span("step", 0, 10**6), 1500)
    assert aligned.timeline.live_bytes == found.live_bytes
    assert all(left <= right for left, right in pairwise(aligned.timeline.ticks))
    assert aligned.timeline.ticks[0] >= 0
    assert aligned.timeline.ticks[-1] <= len(mine)
    assert aligned.in_order <= aligned.matched_ops <= min(aligned.predicted_ops, aligned.measured_ops)
