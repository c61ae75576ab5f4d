"""What models return for a batch."""

from __future__ import annotations

import keras
import pytest
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


def _image():
    inputs = keras.Input((12, 12, 3))
    x = L.MaxPooling2D(padding="same")(L.BatchNormalization()(L.Conv2D(4, 3, strides=2)(inputs)))
    x = L.Add()([x, L.SeparableConv2D(4, 3, padding="same")(x)])
    return keras.Model(inputs, [L.GlobalAveragePooling2D()(x), L.UpSampling2D()(x)])


def _words():
    inputs = keras.Input((7,), dtype="int32")
    x = L.Embedding(11, 6)(inputs)
    x = L.MultiHeadAttention(2, 3)(x, x) + keras.ops.mean(x, axis=1, keepdims=True)
    return keras.Model(inputs, {"all": L.Bidirectional(L.GRU(5, return_sequences=True))(x), "last": x[:, -1]})


def _another_batch():
    inputs = keras.Input((4, 6))
    both = L.Concatenate(axis=0)([inputs, inputs])
    return keras.Model(inputs, [both, keras.ops.reshape(inputs, (-1, 6)), keras.ops.argmax(both, axis=-1)])


def _nested_in_half_precision():
    policy = "mixed_float16"
    inner = keras.Sequential([keras.Input((5,)), L.Dense(4, dtype=policy), L.Dropout(0.5, dtype=policy)])
    return keras.Sequential([keras.Input((5,)), inner, L.Reshape((2, 2), dtype=policy)])


def _layer_of_ones_own():
    class Twice(L.Layer):
        def call(self, x):
            return tf.concat([x, x], axis=-1)

        def compute_output_shape(self, shape):
            return shape  # which is not so

    return keras.Sequential([keras.Input((3,)), L.Dense(2), Twice()])


@pytest.mark.parametrize(
    "make",
    [_image, _words, _another_batch, _nested_in_half_precision, _layer_of_ones_own],
    ids=lambda make: make.__name__,
)
def test_specs_are_those_of_what_the_model_returns(make):
    model = make()
    given = tf.zeros((3, *model.input_shape[1:]), model.inputs[0].dtype)
    returned = model(given, training=False)
    found = output_specs(model, tf.TensorSpec(given.shape, given.dtype), 3)
    assert keras.tree.map_structure(lambda spec: (tuple(spec.shape), spec.dtype), found) == keras.tree.map_structure(
        lambda tensor: (tuple(tensor.shape), tensor.dtype), returned
    )
