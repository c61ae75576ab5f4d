"""A step as another process gets it."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.training import training_of_function
from tensorboard_plugin_memest.estimation.xla.request import NotCompilableError, Request, request_of

L = keras.layers


def recurrent() -> keras.Model:
    model = keras.Sequential([keras.Input((5, 4)), L.LSTM(3), L.Dropout(0.5), L.Dense(2)])
    model.compile("adam", "mse")
    return model


def requested(build, batch_size=8, **given) -> Request:
    with untouched_globals():
        training = training_of_function(build, Given(batch_size, jit_compile=True, **given))
    return request_of(training.step, training.trace.handles)


def test_the_same_step_traced_again_is_the_same_request_and_another_is_not():
    first, again = requested(recurrent), requested(recurrent)
    assert first == again
    assert first.digest("1") == again.digest("1") != first.digest("2")
    assert requested(recurrent, batch_size=9).digest("1") != first.digest("1")


def test_the_batch_is_fed_and_variables_are_given():
    made = requested(recurrent)
    feeds = [(one.shape, one.dtype) for one in made.arguments if one.kind == "feed"]
    assert feeds == [((8, 5, 4), "float32"), ((8, 2), "float32")]
    shapes = [one.shape for one in made.arguments if one.kind == "variable"]
    assert shapes.count((4, 12)) == 3, "the kernel, m and v"
    graph = tf.compat.v1.GraphDef.FromString(made.graph)
    assert not {node.op for node in graph.node} & {"IteratorGetNext", "Placeholder"}


class Table(L.Layer):
    supports_jit = True

    def __init__(self):
        super().__init__()
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2.0]), 0.0)

    def call(self, x):
        return x + self.table.lookup(tf.cast(x, tf.int32))


def test_what_xla_cannot_be_given_is_named():
    def build():
        model = keras.Sequential([keras.Input((4,)), Table(), L.Dense(1)])
        model.compile("sgd", "mse")
        return model

    with pytest.raises(NotCompilableError, match="a resource, which XLA cannot take"):
        requested(build)
