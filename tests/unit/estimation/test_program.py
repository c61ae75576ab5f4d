"""Programs of steps that call functions, and what had to be assumed about them."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.unit.estimation.traced import Looked, look

L = keras.layers


def with_layer(call, batch_size: int = 8) -> Looked:
    """A model with a layer named `odd` that does `call`."""

    class Odd(L.Layer):
        def call(self, x):
            return call(x)

    model = keras.Sequential([keras.Input((6,)), L.Dense(6), Odd(name="odd"), L.Dense(1)])
    model.compile("sgd", "mse")
    return look(model, batch_size)


def test_a_plain_model_calls_nothing_and_assumes_nothing():
    looked = with_layer(lambda x: x * 2.0)
    assert looked.program.called == {}
    assert looked.notes == []


def test_loops_are_counted_forward_and_back():
    looked = with_layer(lambda x: tf.while_loop(lambda n, _: n < 5, lambda n, y: (n + 1, tf.sin(y)), (0, x))[1])
    assert [loop.count for loop in looked.program.loops.values()] == [5, 5]
    assert looked.notes == []
    assert all(len(programs) == 1 for programs in looked.program.called.values())


def test_what_decides_whether_a_loop_goes_on_is_found_and_how_many_iterations_overlap():
    def call(x):
        return tf.while_loop(
            lambda _, n, *__: n < 5, lambda y, n, z: (tf.sin(y), n + 1, z), (x, 0, x), parallel_iterations=7
        )[0]

    forward, backward = with_layer(call).program.loops.values()
    # Before the loop's variables TensorFlow puts a counter and a bound of its own, which here nothing bounds.
    assert forward.deciding == {3}
    assert (forward.at_once, backward.at_once) == (7, 7)


def test_a_loop_that_the_data_decides_is_counted_once_and_that_is_said():
    def call(x):
        return tf.while_loop(lambda y: tf.reduce_max(tf.abs(y)) > 1.0, lambda y: (y * 0.5,), (x,))[0]

    looked = with_layer(call)
    assert {loop.count for loop in looked.program.loops.values()} == {1}
    assert looked.notes
    for note in looked.notes:
        assert "(odd) runs is not known; it was counted once" in note


def test_both_branches_of_a_condition_are_known():
    looked = with_layer(lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.sin(x), lambda: x @ tf.transpose(x) @ x))
    assert any(len(programs) == 2 for programs in looked.program.called.values())


def test_python_code_is_named_and_not_counted():
    def call(x):
        y = tf.numpy_function(lambda array: np.sin(array), [x], tf.float32)
        return tf.ensure_shape(y, x.shape) + x

    looked = with_layer(call)
    (note,) = looked.notes
    assert "(odd) runs Python code; what that allocates is not counted" in note


def test_functions_inside_functions_are_programs_too():
    def call(x):
        def rows(y):
            return tf.map_fn(lambda row: tf.sin(row) * 2.0, y)

        return tf.while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, rows(y)), (0, x))[1]

    looked = with_layer(call)
    counts = []
    for programs in looked.program.called.values():
        for program in programs:
            counts += [loop.count for loop in program.loops.values()]
    assert 3 in {loop.count for loop in looked.program.loops.values()}
    assert 8 in counts, "the rows of a batch of 8"
