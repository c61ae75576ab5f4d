"""How often loops run, and which branches, where constants and counters decide that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.graph import optimized_graph
from tensorboard_plugin_memest.estimation.trial import trial_of
from tests.unit.estimation.graphs import happens, program


def counts(function: Callable[..., Any], *specs: tf.TensorSpec) -> list[int | None]:
    """How often each loop of a function runs; None where the data decides that."""
    traced = tf.function(function).get_concrete_function(*specs).graph
    trial = trial_of(program(optimized_graph(traced, {}, "CPU", 1)))
    return [None if name in trial.undecided else count for name, count in trial.iterations.items()]


VECTOR = tf.TensorSpec((8,), "float32")


def doubling(times: Any, x: Any) -> Any:
    return tf.while_loop(lambda n, _: n < times, lambda n, value: (n + 1, value * 2.0 + x), (0, x))[1]


@pytest.mark.parametrize("times", [1, 7, 1000])
def test_a_loop_to_a_constant_runs_that_often(times):
    assert counts(lambda x: doubling(times, x), VECTOR) == [times]


def test_a_bound_that_is_included_counts_once_more():
    def function(x):
        return tf.while_loop(lambda n, _: n <= 7, lambda n, value: (n + 1, value * x), (0, x))[1]

    assert counts(function, VECTOR) == [8]


@pytest.mark.parametrize(
    ("condition", "step", "first", "count"),
    [
        (lambda n: n < 20, 1, 5, 15),
        (lambda n: n < 20, 3, 0, 7),
        (lambda n: n <= 20, 5, 0, 5),
        (lambda n: n > 0, -1, 9, 9),
        (lambda n: n >= 0, -2, 9, 5),
        (lambda n: n < 20, 1, 30, 0),
    ],
)
def test_where_a_counter_begins_and_how_it_goes_on_count(condition, step, first, count):
    def function(x):
        return tf.while_loop(
            lambda n, _: condition(n), lambda n, value: (n + step, value * 2.0 + x), (tf.constant(first), x)
        )[1]

    assert counts(function, VECTOR) == [count]


def test_a_loop_over_a_range():
    @tf.function
    def summed(x):
        total = tf.zeros_like(x)
        for n in tf.range(2, 14, 4):
            total += x * tf.cast(n, "float32")
        return total

    assert counts(summed.python_function, VECTOR) == [3]


def test_the_smaller_of_two_bounds_decides():
    def function(x):
        return tf.while_loop(
            lambda n, _: n < 7, lambda n, value: (n + 1, value * 2.0 + x), (0, x), maximum_iterations=4
        )[1]

    assert counts(function, VECTOR) == [4]


def test_a_bound_from_the_data_is_not_known():
    assert counts(lambda x, n: doubling(n, x), VECTOR, tf.TensorSpec((), "int32")) == [None]


def test_a_condition_that_compares_no_counter_is_not_known():
    def function(x):
        return tf.while_loop(lambda value: tf.reduce_sum(value) > 1.0, lambda value: (value * 0.5 - x,), (x,))

    assert counts(function, VECTOR) == [None]


def test_the_loop_of_a_gradient_runs_as_often_as_its_forward_loop():
    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, last = tf.while_loop(lambda n, _: n < 6, lambda n, value: (n + 1, tf.sin(value) * x), (0, x))
            result = tf.reduce_sum(last)
        return tape.gradient(result, x)

    assert counts(function, VECTOR) == [6, 6]


def sines(times: int, x: Any) -> Any:
    return tf.while_loop(lambda n, _: n < times, lambda n, value: (n + 1, tf.sin(value) * x), (0, x))[1]


# What decides lies in the branch, in a branch of the branch, in one of many, or in a branch that another loop takes.
@pytest.mark.parametrize(
    ("value_of", "expected"),
    [
        (lambda x: tf.cond(x[0] > 0, lambda: sines(6, x), lambda: x), [6, 6]),
        (lambda x: tf.cond(x[0] > 0, lambda: tf.cond(x[1] > 0, lambda: sines(6, x), lambda: x), lambda: x), [6, 6]),
        (lambda x: tf.switch_case(tf.cast(x[0], "int32"), [lambda: x, lambda: sines(6, x)]), [6, 6]),
        (
            lambda x: tf.while_loop(
                lambda n, _: n < 3,
                lambda n, y: (n + 1, tf.cond(y[0] > 0, lambda: sines(6, y), lambda: y)),
                (0, x),
            )[1],
            [3, 3, 6, 6],
        ),
    ],
    ids=["branch", "branch in a branch", "one of many", "branch in a loop"],
)
def test_the_gradient_of_a_loop_in_a_branch_runs_as_often_as_the_loop(value_of, expected):
    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = tf.reduce_sum(value_of(x))
        return tape.gradient(result, x)

    assert sorted(counts(function, VECTOR)) == expected


def test_a_recurrent_layer_runs_once_a_time_step():
    layer = keras.layers.SimpleRNN(4)
    layer.build((None, 13, 5))
    assert counts(lambda x: layer(x), tf.TensorSpec((2, 13, 5), "float32")) == [13]


def test_map_fn_runs_once_an_element():
    assert counts(lambda x: tf.map_fn(lambda row: tf.sin(row) * 2.0, x), tf.TensorSpec((9, 3), "float32")) == [9]


def test_a_loop_inside_a_loop_runs_as_often_as_both_say():
    def function(x):
        def inner(y, times):
            return tf.while_loop(lambda n, _: n < times, lambda n, value: (n + 1, tf.sin(value)), (0, y))[1]

        return tf.while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, inner(y, n + 2)), (0, x))[1]

    # The inner one at most up to a bound of 4.
    assert sorted(counts(function, VECTOR)) == [3, 4]


def test_what_a_counter_decides_in_a_loop_is_done_as_often_as_it_says():
    def function(x):
        def body(n, value):
            return n + 1, tf.cond(n % 3 == 0, lambda: value @ value, lambda: tf.sin(value))

        return tf.while_loop(lambda n, _: n < 7, body, (0, x))[1]

    traced = tf.function(function).get_concrete_function(tf.TensorSpec((8, 8), "float32")).graph
    made = program(optimized_graph(traced, {}, "CPU", 1))
    products = [word for word in happens(made) if word.startswith("+") and "matmul" in word.lower()]
    assert len(products) == 3
