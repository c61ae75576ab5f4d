"""Programs of steps that call functions, and what had to be assumed about them."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.trial import trial_of
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
    assert list(trial_of(looked.program).iterations.values()) == [5, 5]
    assert looked.notes == []
    assert looked.program.called == {}


def test_how_many_iterations_overlap_is_what_the_loop_says():
    def call(x):
        return tf.while_loop(lambda n, _: n < 5, lambda n, y: (n + 1, tf.sin(y)), (0, x), parallel_iterations=7)[1]

    assert {loop.at_once for loop in with_layer(call).program.plan.loops.values()} == {7}


def test_a_loop_that_the_data_decides_is_counted_once_and_that_is_said():
    def call(x):
        return tf.while_loop(lambda y: tf.reduce_max(tf.abs(y)) > 1.0, lambda y: (y * 0.5,), (x,))[0]

    looked = with_layer(call)
    assert set(trial_of(looked.program).iterations.values()) == {1}
    assert looked.notes
    for note in looked.notes:
        assert "(odd) runs is not known; it was counted once" in note


def test_both_branches_of_a_condition_are_known():
    looked = with_layer(lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.sin(x), lambda: x @ tf.transpose(x) @ x))
    ops = {node.op for node in looked.graph.nodes}
    assert {"Switch", "Merge", "Sin", "MatMul"} <= ops


def test_python_code_is_named_and_not_counted():
    def call(x):
        y = tf.numpy_function(lambda array: np.sin(array), [x], tf.float32)
        return tf.ensure_shape(y, x.shape) + x

    looked = with_layer(call)
    (note,) = looked.notes
    assert "(odd) runs Python code; what that allocates is not counted" in note


def test_loops_inside_loops_are_counted_too():
    def call(x):
        def rows(y):
            return tf.map_fn(lambda row: tf.sin(row) * 2.0, y)

        return tf.while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, rows(y)), (0, x))[1]

    counts = trial_of(with_layer(call).program).iterations.values()
    # Of the outer loop, and of the rows of a batch of 8.
    assert sorted(counts) == [3, 3, 8, 8]


def test_a_function_that_is_not_to_be_inlined_stays_a_call_with_a_program_of_its_own():
    @tf.function(experimental_attributes={"_noinline": True})
    def apart(x):
        return tf.sin(x) @ tf.transpose(x) @ x

    looked = with_layer(lambda x: apart(x))
    assert looked.program.called
    made = {tag.name for tag in looked.tags(least=1) if "MatMul" in tag.name or "matmul" in tag.name}
    assert any("PartitionedCall" in name for name in made)


def test_what_xla_makes_of_a_function_is_not_known_and_that_is_said():
    looked = with_layer(lambda x: tf.function(lambda y: tf.sin(y) @ tf.transpose(y) @ y, jit_compile=True)(x))
    assert len(looked.program.called) == 2, "forward and backward"
    assert len(looked.notes) == 2
    for note in looked.notes:
        assert "(odd) is compiled by XLA, which may keep fewer tensors than its ops make" in note


def test_grouped_convolutions_are_compiled_and_known():
    model = keras.Sequential(
        [keras.Input((8, 8, 4)), L.Conv2D(8, 3), L.Conv2D(8, 3, groups=4), L.Flatten(), L.Dense(1)]
    )
    model.compile("sgd", "mse")
    looked = look(model, 8)
    forward, backward = looked.program.called.values()
    assert not forward.workspaces
    assert len(backward.workspaces) == 2
    assert looked.notes == []
    # The call of the gradients has no scope that would tell whose they are.
    made = {tag.role: tag for tags in backward.tags for tag in tags if tag.layer != "(constants)"}
    assert {tag.layer for tag in made.values()} == {model.layers[1].name}, made
