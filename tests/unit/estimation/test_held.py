"""What small variables hold that exist: it bounds loops, chooses branches, and says how large tensors are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import memest
from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.held import held_values
from tensorboard_plugin_memest.estimation.trace import trace_function

ROWS, WIDTH = 64, 1000
ROW_BYTES = 4 * WIDTH
X = tf.TensorSpec((ROWS, WIDTH))


def _peak(step: Callable[..., Any], phase: str = "step") -> int:
    """Bytes that a step takes besides what it is given."""
    made = memest.estimate_function(tf.function(step), X, device="CPU")
    assert not [note for note in made.assumptions if "not known" in note or "taken for the batch" in note]
    return made.phases[phase].requested_peak_bytes - made.resident_bytes - ROWS * ROW_BYTES


def _listed(x: Any, times: Any) -> Any:
    """As many copies of the argument, one after another."""
    kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for number in tf.range(times):
        kept = kept.write(number, x * tf.cast(number, tf.float32))
    return kept.stack()


def test_small_variables_that_exist_have_their_values_and_no_others():
    small, vector, large = tf.Variable(7), tf.Variable([True, False]), tf.Variable(tf.ones((100,)))
    words = tf.Variable("words")
    creations = Creations()
    made: list[tf.Variable] = []

    def step() -> Any:
        if not made:
            with tf.init_scope():
                made.append(tf.Variable(3))
        tf.print(words)
        return tf.reduce_sum(large) + tf.cast(small + made[0], "float32") + tf.cast(vector[0], "float32")

    with creations.recorded():
        trace = trace_function("step", step, [], lambda: [small, vector, large, words, *made])
    found = {variable.dtype: value for variable, value in held_values(trace, creations).items()}
    assert found.keys() == {"int32", "bool"}
    assert found["int32"] == 7
    assert np.array_equal(found["bool"], [True, False])


@pytest.mark.parametrize("bound", [3, 12])
def test_a_variable_bounds_a_loop_and_the_size_of_what_it_lists(bound):
    times = tf.Variable(bound)

    def step(x):
        return tf.reduce_max(_listed(x, times))

    # The elements of the list, and the tensor that is made of them.
    listed = bound * ROWS * ROW_BYTES
    assert 2 * listed <= _peak(step) <= 2 * listed + ROW_BYTES


@pytest.mark.parametrize(
    "rounded",
    [
        lambda half: tf.cast(tf.math.ceil(half), tf.int32),
        lambda half: tf.cast(tf.sqrt(half * 20.0), tf.int32) - 2,
        lambda half: tf.gather(tf.constant([1, 2, 5, 3]), tf.cast(half, tf.int32)),
        lambda half: tf.cast(tf.stack([half, 2 * half])[1], tf.int32),
    ],
)
def test_what_a_bound_is_worked_out_from_may_be_no_whole_number(rounded):
    half = tf.Variable(2.5)
    expected = int(rounded(half))
    assert expected in (3, 5)
    assert _peak(lambda x: tf.reduce_max(_listed(x, rounded(half)))) >= 2 * expected * ROWS * ROW_BYTES
    assert _peak(lambda x: tf.reduce_max(_listed(x, rounded(half)))) < (2 * expected + 1) * ROWS * ROW_BYTES


def test_how_long_a_list_is_bounds_a_loop():
    times = tf.Variable(4)

    def step(x):
        first = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for number in tf.range(times):
            first = first.write(number, tf.cast(number, tf.float32))
        return tf.reduce_max(_listed(x, first.size()))

    assert 8 * ROWS * ROW_BYTES <= _peak(step) < 9 * ROWS * ROW_BYTES


def test_the_rows_of_all_that_a_list_holds_are_joined():
    def step(x):
        kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for number in tf.range(3):
            kept = kept.write(number, tf.concat([x, x], 0) * tf.cast(number, tf.float32))
        return tf.reduce_max(kept.concat())

    assert 12 * ROWS * ROW_BYTES <= _peak(step) < 13 * ROWS * ROW_BYTES


def test_a_counter_that_exists_says_which_branch_the_first_step_takes():
    def first_step(begun: int) -> int:
        count = tf.Variable(begun, dtype=tf.int64)

        def step(x):
            count.assign_add(1)
            if count % 4 == 0:
                return tf.reduce_max(tf.tile(x + 1.0, (20, 1)))
            return tf.reduce_max(x + 1.0)

        assert _peak(step) >= 20 * ROWS * ROW_BYTES
        return _peak(step, "first_step")

    assert first_step(3) >= 20 * ROWS * ROW_BYTES
    assert first_step(0) < 3 * ROWS * ROW_BYTES


def test_tensors_from_outside_bound_loops():
    lengths = tf.constant([2, 4, 3])

    def step(x):
        total = 0.0
        for number in tf.range(3):
            total += tf.reduce_max(_listed(x, lengths[number]))
        return total

    assert 8 * ROWS * ROW_BYTES <= _peak(step) < 12 * ROWS * ROW_BYTES


def test_a_counter_says_how_often_loops_run_in_each_of_several_steps():
    count = tf.Variable(0)

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = x
            for _ in tf.range(2 + 4 * (count % 2)):
                value = tf.sin(value)
        count.assign_add(1)
        return tf.reduce_max(tape.gradient(value, x))

    # What a gradient needs of each iteration is kept.
    assert _peak(step) - _peak(step, "first_step") >= 3 * ROWS * ROW_BYTES


def test_sizes_in_a_branch_that_the_first_step_does_not_take_are_known():
    count = tf.Variable(0)

    def step(x):
        count.assign_add(1)
        # Half as many rows as there are, which a branch does not see while it is traced.
        rows = tf.shape(x)[0] // 2
        return tf.cond(
            count % 3 == 0,
            lambda: tf.reduce_max(tf.random.normal((rows, 7 * WIDTH))),
            lambda: tf.reduce_max(x + 1.0),
        )

    half = ROWS // 2 * 7 * ROW_BYTES
    assert half <= _peak(step) < half + ROWS * ROW_BYTES
