"""What models return for a batch."""

from __future__ import annotations

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.outputs import output_specs

L = keras.layers


def test_the_structure_of_the_outputs_is_the_models():
    inputs = keras.Input((6,))
    model = keras.Model(inputs, {"a": L.Dense(2)(inputs), "b": [L.Dense(3)(inputs)]})
    specs = output_specs(model, tf.TensorSpec((5, 6)), 5)
    assert tuple(specs["a"].shape) == (5, 2)
    assert [tuple(spec.shape) for spec in specs["b"]] == [(5, 3)]
    assert specs["a"].dtype == "float32"


def test_dtypes_are_those_that_the_model_computes_in():
    model = keras.Sequential([keras.Input((6,)), L.Dense(2, dtype="mixed_float16")])
    assert output_specs(model, tf.TensorSpec((5, 6)), 5).dtype == "float16"


def test_a_batch_that_gets_lost_on_the_way_is_the_batch():
    lookup = L.TextVectorization(max_tokens=10, output_sequence_length=3, vocabulary=["a", "b"])
    model = keras.Sequential([keras.Input((), dtype="string"), lookup, L.Embedding(10, 4), L.Flatten(), L.Dense(2)])
    assert tuple(output_specs(model, tf.TensorSpec((5,), "string"), 5).shape) == (5, 2)


def test_what_is_not_built_is_built():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(2)

        def call(self, x):
            return self.dense(x)

    model = Model()
    assert tuple(output_specs(model, tf.TensorSpec((5, 6)), 5).shape) == (5, 2)
    assert model.dense.built
