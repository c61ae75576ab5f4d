"""Models as users write them, and worse: each gets an estimate that adds up, and stays exactly as it was."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.reachable import is_wrapper, reachable
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers
Spec = tf.TensorSpec


def sequential(*layers: keras.layers.Layer, shape: tuple = (12,), **compiled) -> keras.Model:
    model = keras.Sequential([keras.Input(shape), *layers])
    model.compile(**{"optimizer": "adam", "loss": "mse", **compiled})
    return model


def subclassed() -> keras.Model:
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = {"first": [L.Dense(8), L.Dropout(0.1)], "last": (L.Dense(2),)}

        def call(self, x, training=False):
            for part in self.parts["first"]:
                x = part(x)
            return self.parts["last"][0](x)

    model = Model()
    model(np.zeros((1, 12)))
    model.compile("adam", "mse")
    return model


def built_in_name_only() -> keras.Model:
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(2)

        def call(self, x):
            return self.dense(x)

    model = Model()
    model.build((None, 12))  # marks it as built, while its layer is not
    model.compile("adam", "mse")
    return model


def layers_made_in_call() -> keras.Model:
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(4)
            self.late = None

        def call(self, x):
            if self.late is None:
                self.late = L.Dense(2)
            return self.late(self.dense(x))

    model = Model()
    model(np.zeros((1, 12)))
    model.compile("adam", "mse")
    return model


def several_inputs_and_outputs() -> keras.Model:
    a, b = keras.Input((4,), name="a"), keras.Input((3,), dtype="int32", name="b")
    x = L.Concatenate()([a, L.Flatten()(L.Embedding(50, 4)(b))])
    outputs = {"p": L.Dense(3, activation="softmax", name="p")(x), "q": L.Dense(1, name="q")(x)}
    model = keras.Model({"a": a, "b": b}, outputs)
    losses = {"p": "sparse_categorical_crossentropy", "q": "mse"}
    model.compile("adam", losses, metrics={"p": ["accuracy"], "q": ["mae"]}, loss_weights={"p": 1.0, "q": 0.5})
    return model


def outputs_without_loss() -> keras.Model:
    inputs = keras.Input((12,))
    model = keras.Model(inputs, [L.Dense(2, name="one")(inputs), L.Dense(3, name="other")(inputs)])
    model.compile("adam", {"one": "mse", "other": None})
    return model


def adapted() -> keras.Model:
    normalize = L.Normalization()
    normalize.adapt(np.random.rand(20, 12).astype("float32"))
    return sequential(normalize, L.Dense(1))


def lookup() -> keras.Model:
    words = keras.Input((3,), dtype="string")
    x = L.Embedding(5, 4)(L.StringLookup(vocabulary=["a", "b", "c"])(words))
    model = keras.Model(words, L.Dense(1)(L.Flatten()(x)))
    model.compile("adam", "mse")
    return model


def own_step_with_two_optimizers() -> keras.Model:
    class Adversarial(keras.Model):
        def __init__(self):
            super().__init__()
            self.maker = keras.Sequential([keras.Input((5,)), L.Dense(12)])
            self.judge = keras.Sequential([keras.Input((12,)), L.Dense(1)])

        def compile(self, makers, judges):
            super().compile()
            self.makers, self.judges = makers, judges

        def train_step(self, real):
            noise = tf.random.normal((tf.shape(real)[0], 5))
            for part, optimizer in ((self.judge, self.judges), (self.maker, self.makers)):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(self.judge(self.maker(noise))) - tf.reduce_mean(self.judge(real))
                weights = part.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"loss": loss}

    model = Adversarial()
    model.compile(keras.optimizers.Adam(), keras.optimizers.RMSprop())
    return model


def own_optimizer() -> keras.Model:
    class Momentum:
        """No optimizer of Keras'."""

        def __init__(self):
            self.slots = {}

        def apply(self, gradients, weights):
            for number, (gradient, weight) in enumerate(zip(gradients, weights, strict=True)):
                if number not in self.slots:
                    self.slots[number] = tf.Variable(tf.zeros_like(weight.value), name=f"slot{number}")
                self.slots[number].assign(0.9 * self.slots[number] + gradient)
                weight.assign_sub(0.1 * self.slots[number])

    class Model(keras.Model):
        momentum = None

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x) - y))
            self.momentum.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            return {"loss": loss}

    inputs = keras.Input((12,))
    model = Model(inputs, L.Dense(1)(inputs))
    model.momentum = Momentum()
    model.compile(loss="mse")
    return model


def teacher_and_queue() -> keras.Model:
    class Taught(keras.Model):
        def __init__(self):
            super().__init__()
            self.student = keras.Sequential([keras.Input((12,)), L.Dense(8)])
            self.teacher = keras.models.clone_model(self.student)
            self.teacher.trainable = False
            self.queue = tf.Variable(tf.zeros((64, 12)), trainable=False)

        def call(self, x):
            return self.student(x)

        def train_step(self, data):
            x, _ = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.student(x) - self.teacher(self.queue)[:1]))
            weights = self.student.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            for new, old in zip(self.student.variables, self.teacher.variables, strict=True):
                old.assign(0.9 * old + 0.1 * new)
            self.queue.assign(tf.concat([x, self.queue], 0)[:64])
            return {"loss": loss}

    model = Taught()
    model(np.zeros((1, 12)))
    model.compile("adam", "mse")
    return model


def shared_and_nested() -> keras.Model:
    inner = keras.Sequential([keras.Input((12,)), L.Dense(12, name="x"), L.Dense(12, name="y")], name="inner")
    return sequential(inner, inner, L.Dense(1))


def names_that_collide() -> keras.Model:
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [L.Dense(12, name="same") for _ in range(3)]

        def call(self, x):
            for part in self.parts:
                x = part(x)
            return x

    model = Model()
    model(np.zeros((1, 12)))
    model.compile("adafactor", "mse")
    return model


def losses_added() -> keras.Model:
    class AddLoss(L.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_mean(tf.square(x)))
            return x

    dense = L.Dense(8, kernel_regularizer="l2", activity_regularizer="l1")
    return sequential(dense, AddLoss(), L.BatchNormalization(), L.Dense(1, trainable=False))


def only_added_losses() -> keras.Model:
    class AddLoss(L.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_mean(tf.square(x)))
            return x

    return sequential(L.Dense(8), AddLoss(), loss=None)


def adapted_by_low_rank() -> keras.Model:
    dense, table = L.Dense(16), L.Embedding(40, 8)
    inputs = keras.Input((5,), dtype="int32")
    model = keras.Model(inputs, L.Dense(1)(dense(L.Flatten()(table(inputs)))))
    dense.enable_lora(2)
    table.enable_lora(2)
    model.compile("adam", "mse")
    return model


def frozen_base() -> keras.Model:
    base = keras.Sequential([keras.Input((12,)), L.Dense(16), L.BatchNormalization()], name="base")
    base.trainable = False
    return sequential(base, L.Dense(1))


def already_trained() -> keras.Model:
    model = sequential(L.Dense(8), L.Dropout(0.2), L.Dense(1), metrics=["mae"])
    model.fit(np.zeros((8, 12)), np.zeros((8, 1)), batch_size=4, verbose=0)
    return model


def nothing_to_train() -> keras.Model:
    model = sequential(L.Dense(1))
    model.trainable = False
    model.compile("adam", "mse")
    return model


def python_in_a_layer() -> keras.Model:
    class Python(L.Layer):
        def call(self, x):
            return tf.ensure_shape(tf.numpy_function(lambda array: array * 2, [x], tf.float32), x.shape)

    return sequential(L.Dense(4), Python(), L.Dense(1))


def condition_in_a_layer() -> keras.Model:
    class Condition(L.Layer):
        def call(self, x):
            return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.sin(x), lambda: x * 2.0)

    return sequential(L.Dense(4), Condition(), L.Dense(1))


def step_in_a_function() -> keras.Model:
    class Model(keras.Model):
        @tf.function
        def train_step(self, data):
            return super().train_step(data)

    inputs = keras.Input((12,))
    model = Model(inputs, L.Dense(1)(inputs))
    model.compile("adam", "mse")
    return model


def steps_per_execution() -> keras.Model:
    return sequential(L.Dense(1), steps_per_execution=4)


def precision(policy: str):
    def build() -> keras.Model:
        return sequential(L.Dense(8, activation="relu", dtype=policy), L.Dense(1, dtype="float32"))

    return build


def optimizer(**options):
    def build() -> keras.Model:
        return sequential(L.Dense(8), L.Dense(1), optimizer=keras.optimizers.Adam(**options))

    return build


def recurrent(layer):
    return lambda: sequential(layer(), L.Flatten(), L.Dense(1), shape=(6, 5))


HOSTILE = {
    "subclassed": subclassed,
    "built in name only": built_in_name_only,
    "layers made in call": layers_made_in_call,
    "several inputs and outputs": several_inputs_and_outputs,
    "outputs without loss": outputs_without_loss,
    "adapted": adapted,
    "lookup": lookup,
    "own step with two optimizers": own_step_with_two_optimizers,
    "own optimizer": own_optimizer,
    "teacher and queue": teacher_and_queue,
    "shared and nested": shared_and_nested,
    "names that collide": names_that_collide,
    "losses added": losses_added,
    "only added losses": only_added_losses,
    "adapted by low rank": adapted_by_low_rank,
    "frozen base": frozen_base,
    "already trained": already_trained,
    "nothing to train": nothing_to_train,
    "python in a layer": python_in_a_layer,
    "condition in a layer": condition_in_a_layer,
    "step in a function": step_in_a_function,
    "steps per execution": steps_per_execution,
    "float16": precision("mixed_float16"),
    "bfloat16": precision("mixed_bfloat16"),
    "float64": precision("float64"),
    "accumulation and averages": optimizer(use_ema=True, gradient_accumulation_steps=4, global_clipnorm=1.0),
    "schedule and decay": optimizer(
        learning_rate=keras.optimizers.schedules.CosineDecay(1e-3, 10), weight_decay=0.01, clipvalue=1.0
    ),
    "lstm": recurrent(lambda: L.LSTM(4, return_sequences=True)),
    "both ways": recurrent(lambda: L.Bidirectional(L.GRU(4))),
    "cells": recurrent(lambda: L.RNN([L.LSTMCell(4), L.GRUCell(3)])),
    "time distributed": recurrent(lambda: L.TimeDistributed(L.Dense(4))),
    "unrolled": recurrent(lambda: L.SimpleRNN(4, unroll=True)),
    "convolutional lstm": lambda: sequential(L.ConvLSTM2D(2, 3), L.Flatten(), L.Dense(1), shape=(3, 6, 6, 2)),
}

# Inputs of models that do not say them.
INPUTS = {"own step with two optimizers": Spec((None, 12))}


def state(model: keras.Model) -> dict[tuple[int, str], dict[tuple[str, str], int]]:
    """Attributes and contents of everything behind a model, by identity."""
    found = {}
    for thing in reachable([model]):
        inside = {("attribute", name): id(value) for name, value in getattr(thing, "__dict__", {}).items()}
        if isinstance(thing, (list, tuple)) and not is_wrapper(thing):
            inside |= {("item", str(number)): id(value) for number, value in enumerate(thing)}
        if isinstance(thing, dict):
            inside |= {("key", str(key)): id(value) for key, value in thing.items()}
        found[id(thing), type(thing).__name__] = inside
    return found


def values(model: keras.Model) -> list[bytes]:
    kept = [*model.variables, *model.metrics_variables]
    kept += [] if getattr(model, "optimizer", None) is None else model.optimizer.variables
    return [variable.value.numpy().tobytes() for variable in kept]


def check(made: Estimate, model: keras.Model) -> None:
    assert sum(layer.bytes_at_peak for layer in made.layers) == made.peak_bytes > 0
    for phase in made.phases.values():
        assert sum(item.bytes for item in phase.live_at_peak) == phase.peak_bytes
    assert made.subject.parameters == sum(int(np.prod(weight.shape)) for weight in model.weights)
    weights = [item for item in made.items if item.category is Category.WEIGHTS]
    assert sum(int(np.prod(item.shape)) for item in weights) == made.subject.parameters, "every weight once"
    assert Estimate.from_json(made.to_json()) == made


@pytest.mark.parametrize("name", HOSTILE)
def test_a_model_gets_an_estimate_and_stays_as_it_was(name):
    model = HOSTILE[name]()
    attributes, before = state(model), values(model)
    kept = reachable([model])  # so that no identity is given away meanwhile
    made = estimate(model, batch_size=4, inputs=INPUTS.get(name))
    assert state(model) == attributes
    assert values(model) == before
    assert kept
    if name not in ("built in name only",):
        check(made, model)


@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in ("adapted", "lookup", "already trained")])
def test_the_function_that_builds_it_gets_one_too(name):
    made = estimate(HOSTILE[name], batch_size=4, inputs=INPUTS.get(name))
    assert sum(layer.bytes_at_peak for layer in made.layers) == made.peak_bytes > 0
    assert "build" in made.phases


def test_texts_sizes_are_known_but_for_the_batch():
    vectorize = L.TextVectorization(max_tokens=100, output_sequence_length=6)
    vectorize.adapt(["a b c", "d e f"])
    layers = [vectorize, L.Embedding(100, 8, name="table"), L.GlobalAveragePooling1D(), L.Dense(1)]
    model = keras.Sequential([keras.Input((), dtype="string"), *layers])
    model.compile("adam", "mse")
    made = estimate(model, batch_size=1000)
    embedded = [item for item in made.items if item.layer == "table" and item.shape == (1000, 6, 8)]
    assert embedded, "the embedding's output counts with the whole batch"
    assert any("it was taken for the batch, 1000" in note for note in made.assumptions)
    assert any("lookup table" in note for note in made.assumptions)


def test_slots_of_an_optimizer_that_keras_does_not_know_are_counted_and_said():
    made = estimate(own_optimizer(), batch_size=4)
    slots = [item for item in made.items if item.role == "variable"]
    assert sorted(item.shape for item in slots) == [(1,), (12, 1)]
    assert any("none of the model's, its optimizers' or its metrics'" in note for note in made.assumptions)
    assert made.subject.optimizer is None


@pytest.mark.parametrize("name", ["subclassed", "own step with two optimizers", "accumulation and averages", "lstm"])
def test_a_model_can_be_trained_afterwards_as_ever(name):
    model = HOSTILE[name]()
    for _ in range(2):
        estimate(model, batch_size=4, inputs=INPUTS.get(name))
    x = np.random.rand(8, *((6, 5) if name == "lstm" else (12,))).astype("float32")
    if name == "own step with two optimizers":
        history = model.fit(x, batch_size=4, verbose=0)
    else:
        history = model.fit(x, np.zeros((8, 2 if name == "subclassed" else 1)), batch_size=4, verbose=0)
    assert np.isfinite(history.history["loss"][-1])
