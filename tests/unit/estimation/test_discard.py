"""What is traced goes away again."""

from __future__ import annotations

import gc
import weakref

import keras
import tensorflow as tf
from tensorflow.python.framework import ops

from tensorboard_plugin_memest.estimation.discard import discard_graph
from tensorboard_plugin_memest.estimation.model import estimate


def graphs() -> int:
    gc.collect()
    return sum(isinstance(thing, tf.Graph) for thing in gc.get_objects())


def gradients() -> int:
    return len(list(ops.gradient_registry.list()))


def test_a_graph_and_what_it_holds_go():
    graph = tf.Graph()
    with graph.as_default():
        tensor = tf.zeros((3,))
        tf.square(tensor)
    held = weakref.ref(graph)
    discard_graph(graph)
    del graph, tensor
    gc.collect()
    assert held() is None


def test_custom_gradients_of_a_graph_go_with_it():
    @tf.custom_gradient
    def function(x):
        return x * 2.0, lambda upstream: upstream * 2.0

    graph = tf.Graph()
    before = gradients()
    with graph.as_default():
        function(tf.zeros((3,)))
    assert gradients() == before + 1
    discard_graph(graph)
    assert gradients() == before


def test_other_gradients_stay():
    kept = tf.Graph()
    with kept.as_default():
        tf.custom_gradient(lambda x: (x, lambda upstream: upstream))(tf.zeros(()))
    before = gradients()
    discard_graph(tf.Graph())
    assert gradients() == before


def test_estimates_leave_nothing_behind():
    model = keras.Sequential([keras.Input((5, 4)), keras.layers.LSTM(3), keras.layers.Dense(1)])
    model.compile("adam", "mse")

    def build():
        return keras.models.clone_model(model)

    def both():
        estimate(model, batch_size=2)
        estimate(build, batch_size=2, optimizer="adam", loss="mse")

    both()
    before = graphs(), gradients()
    for _ in range(3):
        both()
    assert (graphs(), gradients()) == before
