"""How variables of models that exist came to be."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.copies import creations_of_copy
from tensorboard_plugin_memest.estimation.given import Given

L = keras.layers


def test_variables_come_in_the_order_of_their_creation_with_what_their_initializers_do():
    model = keras.Sequential([keras.Input((6,)), L.Dense(8), L.Dense(2, kernel_initializer="zeros")])
    pairs = creations_of_copy(model, Given())
    assert pairs is not None
    assert [id(variable) for variable, _ in pairs] == [id(variable) for variable in model.weights]
    copies = [[made.op for made in run.made if made.shape == tuple(variable.shape)] for variable, run in pairs]
    assert copies[0] == ["StatelessRandomUniformV2", "Mul", "AddV2"], "Glorot's numbers are scaled and shifted"
    assert len(copies[2]) == 1, "zeros are made once"


def test_layers_of_the_users_need_not_be_registered():
    class Scale(L.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

        def call(self, x):
            return x * self.scale

    inputs = keras.Input((6,))
    model = keras.Model(inputs, Scale()(L.Dense(3)(inputs)))
    pairs = creations_of_copy(model, Given())
    assert pairs is not None
    assert {variable.name for variable, _ in pairs} == {"kernel", "bias", "scale"}


def test_nothing_of_the_copy_is_left():
    model = keras.Sequential([keras.Input((6,)), L.Dense(8)])
    before = [weight.value.numpy() for weight in model.weights]
    creations_of_copy(model, Given())
    assert all(np.array_equal(old, new.value.numpy()) for old, new in zip(before, model.weights, strict=True))
    assert len(model.weights) == 2


class Named(keras.Model):
    """A model without a configuration, whose layers get other names in every copy."""

    def __init__(self):
        super().__init__()
        self.first, self.second = L.Dense(4), L.Dense(2)

    def call(self, x):
        return self.second(self.first(x))


def test_copies_are_told_by_shapes_not_by_names_of_layers():
    model = Named()
    model(np.zeros((1, 6)))
    pairs = creations_of_copy(model, Given())
    assert pairs is not None
    assert [tuple(variable.shape) for variable, _ in pairs] == [(6, 4), (4,), (4, 2), (2,)]


def test_a_model_that_is_not_built_has_a_copy_that_is_not():
    assert creations_of_copy(Named(), Given(inputs=tf.TensorSpec((None, 6)))) == []


def test_what_cannot_be_copied_is_none():
    class Wants(Named):
        def __init__(self, what):
            super().__init__()

    model = Wants(3)
    model(np.zeros((1, 6)))
    assert creations_of_copy(model, Given()) is None
