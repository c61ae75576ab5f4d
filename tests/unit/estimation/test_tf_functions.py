"""A user's `tf.function`s, before and after an estimate."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.tf_functions import untouched_functions

L = keras.layers


class Stepping(keras.Model):
    """Its step is a function of its own, which creates the optimizer's variables when it is first called."""

    @tf.function
    def train_step(self, data):
        return super().train_step(data)


def stepping() -> keras.Model:
    inputs = keras.Input((4,))
    model = Stepping(inputs, L.Dense(1)(inputs))
    model.compile("adam", "mse")
    return model


def test_a_model_whose_step_is_a_function_is_trained_as_ever_after_an_estimate():
    model = stepping()
    estimate(model, batch_size=8)
    assert not model.optimizer.built
    before = [weight.numpy() for weight in model.weights]
    model.fit(np.ones((8, 4)), np.ones((8, 1)), batch_size=8, epochs=2, verbose=0)
    assert int(model.optimizer.iterations.numpy()) == 2
    assert any(np.any(weight.numpy() != value) for weight, value in zip(model.weights, before, strict=True))


def test_what_was_traced_before_is_not_traced_again():
    traces = []

    @tf.function
    def doubled(x):
        traces.append(x)
        return x + x

    doubled(tf.constant(1.0))
    with untouched_functions():
        graph = tf.Graph()
        with graph.as_default():
            doubled(tf.constant(1.0))
        assert len(traces) == 2
    doubled(tf.constant(2.0))
    assert len(traces) == 2
    assert doubled.experimental_get_tracing_count() == 1


def test_a_function_that_creates_variables_can_still_do_so_once():
    class Counter:
        count = None

        @tf.function
        def add(self):
            if self.count is None:
                self.count = tf.Variable(0)
            return self.count.assign_add(1)

    counter = Counter()
    with untouched_functions(), tf.Graph().as_default():
        counter.add()
    counter.count = None
    assert (int(counter.add()), int(counter.add())) == (1, 2)
    seen = Counter()
    assert (int(seen.add()), int(seen.add())) == (1, 2)
    with untouched_functions():
        pass
    assert int(seen.add()) == 3
