"""Models with several inputs or outputs, and with shared layers."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from benchmarks.configuration import Configuration, compiled

FAMILY = "several inputs or outputs"


def _captions() -> keras.Model:
    image, words = keras.Input((64, 64, 3)), keras.Input((24,), dtype="int32")
    x = image
    for filters in (32, 64, 128):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
    seen = layers.Dense(256, activation="relu")(layers.GlobalAveragePooling2D()(x))
    read = layers.LSTM(256)(layers.Embedding(8000, 128)(words))
    outputs = layers.Dense(8000, activation="softmax")(layers.Add()([seen, read]))
    return compiled(keras.Model([image, words], outputs))


def _tasks() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    x = inputs
    for filters in (32, 64):
        x = layers.MaxPooling2D()(layers.Conv2D(filters, 3, padding="same", activation="relu")(x))
    shared = layers.Dense(512, activation="relu")(layers.Flatten()(x))
    outputs = {
        "kind": layers.Dense(20, activation="softmax", name="kind")(shared),
        "box": layers.Dense(4, name="box")(layers.Dense(256, activation="relu")(shared)),
        "mask": layers.Conv2DTranspose(1, 4, strides=4, activation="sigmoid", name="mask")(x),
    }
    losses = {"kind": "sparse_categorical_crossentropy", "box": "huber", "mask": "binary_crossentropy"}
    return compiled(keras.Model(inputs, outputs), "adam", losses)


def _siamese() -> keras.Model:
    tower = keras.Sequential([keras.Input((48, 48, 1))])
    for filters in (32, 64):
        tower.add(layers.Conv2D(filters, 3, activation="relu"))
        tower.add(layers.MaxPooling2D())
    tower.add(layers.Flatten())
    tower.add(layers.Dense(256))
    one, other = keras.Input((48, 48, 1)), keras.Input((48, 48, 1))
    difference = ops.abs(tower(one) - tower(other))
    outputs = layers.Dense(1, activation="sigmoid")(difference)
    return compiled(keras.Model([one, other], outputs), "rmsprop", "binary_crossentropy")


class TwoHeads(keras.Model):  # type: ignore[misc]
    """Two heads on a trunk, written as a class."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = [layers.Dense(1024, activation="relu") for _ in range(3)]
        self.heads = [layers.Dense(500), layers.Dense(200)]

    def call(self, data: Any) -> Any:
        x = ops.concatenate([data["left"], data["right"]], axis=-1)
        for layer in self.trunk:
            x = layer(x)
        return [head(x) for head in self.heads]


def _subclassed() -> keras.Model:
    return compiled(TwoHeads(), "adamw", ["mse", "mae"])


def _graph_like() -> keras.Model:
    nodes, edges = keras.Input((128, 64)), keras.Input((128, 128))
    x = nodes
    for _ in range(3):
        x = layers.Dense(256, activation="relu")(layers.Dot(axes=(2, 1))([edges, x]))
    outputs = layers.Dense(7, activation="softmax")(x)
    return compiled(keras.Model([nodes, edges], outputs), "adam")


CONFIGURATIONS = [
    Configuration("captions, image and words, batch 8", FAMILY, _captions, 8, vocabulary=8000),
    Configuration(
        "three tasks, batch 8",
        FAMILY,
        _tasks,
        8,
        targets={
            "kind": tf.TensorSpec((None,), "int64"),
            "box": tf.TensorSpec((None, 4)),
            "mask": tf.TensorSpec((None, 64, 64, 1)),
        },
    ),
    Configuration("siamese, batch 16", FAMILY, _siamese, 16),
    Configuration(
        "subclassed, two heads, batch 64",
        FAMILY,
        _subclassed,
        64,
        {"left": tf.TensorSpec((None, 512)), "right": tf.TensorSpec((None, 256))},
        [tf.TensorSpec((None, 500)), tf.TensorSpec((None, 200))],
    ),
    Configuration("graph convolution, batch 8", FAMILY, _graph_like, 8),
]
