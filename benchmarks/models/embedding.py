"""Embeddings and large vocabularies."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled


def _recommender(vocabulary: int, width: int, optimizer: Any) -> Build:
    def build() -> keras.Model:
        inputs = keras.Input((20,), dtype="int32")
        x = layers.GlobalAveragePooling1D()(layers.Embedding(vocabulary, width)(inputs))
        outputs = layers.Dense(1)(layers.Dense(64, activation="relu")(x))
        return compiled(keras.Model(inputs, outputs), optimizer() if callable(optimizer) else optimizer, "mse")

    return build


def _two_towers() -> keras.Model:
    user, item = keras.Input((1,), dtype="int32", name="user"), keras.Input((1,), dtype="int32", name="item")
    towers = [
        layers.Dense(32)(layers.Dense(64, activation="relu")(layers.Flatten()(layers.Embedding(100_000, 32)(ids))))
        for ids in (user, item)
    ]
    score = layers.Dot(axes=1)(towers)
    return compiled(keras.Model({"user": user, "item": item}, score), "adagrad", "mse")


def _words() -> keras.Model:
    inputs = keras.Input((4,), dtype="int32")
    x = layers.Flatten()(layers.Embedding(30_000, 64)(inputs))
    return compiled(keras.Model(inputs, layers.Dense(30_000, activation="softmax")(layers.Dense(128)(x))), "adam")


def _wide_and_deep() -> keras.Model:
    numbers, ids = keras.Input((32,), name="numbers"), keras.Input((8,), dtype="int32", name="ids")
    deep = layers.Concatenate()([layers.Flatten()(layers.Embedding(150_000, 16)(ids)), numbers])
    for units in (256, 128):
        deep = layers.BatchNormalization()(layers.Dense(units, activation="relu")(deep))
    wide = layers.Dense(64)(numbers)
    outputs = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([wide, deep]))
    return compiled(keras.Model([numbers, ids], outputs), "ftrl", "binary_crossentropy", metrics=["auc"])


def _classes() -> keras.Model:
    parts = [keras.Input((256,)), layers.Dense(256, activation="relu"), layers.Dense(50_000)]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return compiled(keras.Sequential(parts), "adam", loss)


def _of(name: str, build: Build, batch_size: int, vocabulary: int = 2, inputs: Any = None) -> Configuration:
    return Configuration(name, "embedding", build, batch_size, inputs, vocabulary=vocabulary)


CONFIGURATIONS = [
    _of("embeddings 200k, RMSprop, batch 64", _recommender(200_000, 64, "rmsprop"), 64, 200_000),
    _of("embeddings 300k, Adam, batch 64", _recommender(300_000, 32, "adam"), 64, 300_000),
    _of("embeddings 400k, Adagrad, batch 64", _recommender(400_000, 64, "adagrad"), 64, 400_000),
    _of("embeddings 1M, Adam, batch 16", _recommender(1_000_000, 20, "adam"), 16, 1_000_000),
    _of("embeddings 500k, SGD, batch 32", _recommender(500_000, 32, "sgd"), 32, 500_000),
    _of(
        "embeddings 200k, momentum, batch 32",
        _recommender(200_000, 48, lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
        32,
        200_000,
    ),
    _of(
        "two towers, Adagrad, batch 64",
        _two_towers,
        64,
        100_000,
        {"user": tf.TensorSpec((None, 1), "int32"), "item": tf.TensorSpec((None, 1), "int32")},
    ),
    _of("words, large softmax, batch 32", _words, 32, 30_000),
    _of("wide and deep, Ftrl, batch 64", _wide_and_deep, 64, 150_000),
    _of("50k classes, batch 16", _classes, 16),
]
