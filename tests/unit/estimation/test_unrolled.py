"""Loops and branches that are followed op by op while a graph is made."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.unrolled import MOST_ITERATIONS, unrolled


def types_of(function) -> list[str]:
    with tf.Graph().as_default() as graph, unrolled() as notes:
        function()
    return [op.type for op in graph.get_operations()] + notes


def repeated(count: int | None, times: int):
    def body(number, total):
        return number + 1, tf.sin(total)

    return tf.while_loop(
        lambda number, _: number < times, body, (tf.constant(0), tf.zeros([4])), maximum_iterations=count
    )


@pytest.mark.parametrize(("count", "times", "sines"), [(5, 5, 5), (5, 3, 3), (3, 9, 3), (0, 9, 0)])
def test_a_loop_runs_its_body_as_often_as_eager_mode_would(count, times, sines):
    found = types_of(lambda: repeated(count, times))
    assert found.count("Sin") == sines
    assert "While" not in found


@pytest.mark.parametrize("count", [None, MOST_ITERATIONS + 1])
def test_a_loop_without_an_end_in_sight_stays_one_op(count):
    found = types_of(lambda: repeated(count, 10**6))
    assert "StatelessWhile" in found
    assert "Sin" not in found


def test_of_two_branches_the_one_that_is_known_is_taken_else_the_first():
    def decide(value: tf.Tensor):
        return tf.cond(value, lambda: tf.sin(1.0), lambda: tf.cos(1.0))

    assert "Sin" in types_of(lambda: decide(tf.constant(True)))
    assert "Cos" in types_of(lambda: decide(tf.constant(False)))
    unknown = types_of(lambda: decide(tf.compat.v1.placeholder(tf.bool, ())))
    assert "Sin" in unknown
    assert "Cos" not in unknown
    assert any("the first was followed" in one for one in unknown)


def test_a_tensor_array_is_a_list_of_tensors():
    def stacked():
        array = tf.TensorArray(tf.float32, size=3).unstack(tf.zeros([3, 2]))
        result = tf.TensorArray(tf.float32, size=3)

        def body(number, result):
            return number + 1, result.write(number, tf.sin(array.read(number)))

        return tf.while_loop(lambda number, _: number < 3, body, (tf.constant(0), result), maximum_iterations=3)[
            1
        ].stack()

    found = types_of(stacked)
    assert (found.count("Unpack"), found.count("Sin"), found.count("Pack")) == (1, 3, 1)
    assert not [one for one in found if "TensorList" in one]


def test_tensorflow_is_as_it_was_afterwards():
    with pytest.raises(ZeroDivisionError), unrolled():
        raise ZeroDivisionError
    with tf.Graph().as_default() as graph:
        repeated(5, 5)
    assert "StatelessWhile" in [op.type for op in graph.get_operations()]
