"""Updates that are repeated give the graph that a trace of every one of them gives, node for node."""

from __future__ import annotations

from collections import Counter

import keras
import pytest
import tensorflow as tf
from tensorflow.python.eager import context as tf_context

from tensorboard_plugin_memest.estimation import repeated
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.training import training_of_function

Adam = keras.optimizers.Adam


class Named(Adam):
    """An optimizer that does something else to some weights."""

    def assign_sub(self, variable, value):
        super().assign_sub(variable, value * 2 if "kernel" in variable.name else value)


class Twice(keras.Model):
    """A model whose step applies its optimizer twice, the second time with another setting."""

    def train_step(self, data):
        x, y = data
        for beta in (0.9, 0.5):
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            self.optimizer.beta_1 = beta
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        self.optimizer.beta_1 = 0.9
        return {}


class OnTape(keras.Model):
    """A model that takes a gradient through its own update."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            again = self.compute_loss(x, y, self(x, training=True))
        return {"norm": tf.linalg.global_norm(outer.gradient(again, self.trainable_variables))}


def _model(optimizer, kind=keras.Model, jit_compile=False):
    def build():
        inputs = keras.Input((6, 6, 3))
        x = inputs
        for filters in (2, 3, 4):
            x = keras.layers.Conv2D(filters, 2)(x)
        x = keras.layers.BatchNormalization()(x)
        x = keras.layers.Flatten()(x)
        for units in (5, 4, 3, 2):
            x = keras.layers.Dense(units)(x)
        model = kind(inputs, x)
        model.compile(optimizer(), "mse", jit_compile=jit_compile)
        return model

    return build


def _nodes(build):
    with tf_context.eager_mode(), untouched_globals():
        training = training_of_function(build, Given(batch_size=2, one_size=True))
        nodes = [type(node).FromString(node.SerializeToString()) for node in training.step.definition.node]
        owners = list(training.trace.owners.by_op.items())
        training.discard()
    for node in nodes:
        for attribute in ("then_branch", "else_branch", "_gradient_op_type"):
            # Functions are numbered through the process, gradients too.
            node.attr.pop(attribute, None)
    return nodes, owners


O = keras.optimizers  # noqa: E741
REPEATED = {
    "SGD": lambda: O.SGD(),
    "SGD, momentum": lambda: O.SGD(momentum=0.9, nesterov=True, clipvalue=0.5),
    "RMSprop": lambda: O.RMSprop(momentum=0.1, centered=True),
    "Adam": lambda: O.Adam(amsgrad=True, clipnorm=1.0),
    "Adam, rate that changes": lambda: O.Adam(O.schedules.ExponentialDecay(0.1, 10, 0.9)),
    "AdamW": lambda: O.AdamW(weight_decay=0.01, use_ema=True, ema_overwrite_frequency=5),
    "Adamax": lambda: O.Adamax(),
    "Nadam": lambda: O.Nadam(global_clipnorm=1.0),
    "Adagrad": lambda: O.Adagrad(),
    "Adadelta": lambda: O.Adadelta(weight_decay=0.1),
    "Ftrl": lambda: O.Ftrl(l1_regularization_strength=0.1, l2_shrinkage_regularization_strength=0.1),
    "Lion": lambda: O.Lion(),
}
REAL = {
    "Adam, accumulated": lambda: O.Adam(gradient_accumulation_steps=2),
    "Adam, scaled": lambda: O.LossScaleOptimizer(O.Adam()),
    "Adafactor": lambda: O.Adafactor(),
    "Lamb": lambda: O.Lamb(),
    "Muon": lambda: O.Muon(),
    "the user's": lambda: Named(),
}


@pytest.fixture
def copies(monkeypatch):
    counted = Counter()
    repeat = repeated.RepeatingGraph.repeat

    def counting(self, entries, tensors):
        counted["updates"] += 1
        return repeat(self, entries, tensors)

    monkeypatch.setattr(repeated.RepeatingGraph, "repeat", counting)
    return counted


def _check(build, copies, monkeypatch, expected):
    nodes, owners = _nodes(build)
    assert copies["updates"] == expected
    monkeypatch.setattr(repeated, "_ALIKE", set())
    real_nodes, real_owners = _nodes(build)
    assert copies["updates"] == expected
    assert len(nodes) == len(real_nodes) > 150
    for node, real in zip(nodes, real_nodes, strict=True):
        assert node == real
    assert owners == real_owners


@pytest.mark.parametrize("name", REPEATED)
def test_the_graph_is_that_of_a_real_trace(name, copies, monkeypatch):
    # Kernels of convolutions and of dense layers, and vectors: two of each are real; 3 + 4 + 9 weights.
    _check(_model(REPEATED[name]), copies, monkeypatch, 1 + 2 + 7)


def test_so_it_is_for_xla(copies, monkeypatch):
    _check(_model(Adam, jit_compile=True), copies, monkeypatch, 1 + 2 + 7)


@pytest.mark.parametrize("name", REAL)
def test_what_is_not_known_to_be_alike_is_traced(name, copies, monkeypatch):
    _check(_model(REAL[name]), copies, monkeypatch, 0)


def test_settings_that_change_between_updates_count(copies, monkeypatch):
    _check(_model(Adam, Twice), copies, monkeypatch, 2 * (1 + 2 + 7))


def test_what_a_tape_watches_is_traced(copies, monkeypatch):
    _check(_model(Adam, OnTape), copies, monkeypatch, 0)


def test_an_optimizer_has_its_own_update_afterwards():
    optimizer = Adam()
    with repeated.RepeatingGraph("step").updates_repeated([optimizer]):
        assert "update_step" in vars(optimizer)
    assert "update_step" not in vars(optimizer)
