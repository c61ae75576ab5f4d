"""Mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled


def _under(policy: str, make: Callable[[], keras.Model]) -> Build:
    def build() -> keras.Model:
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(policy)
        try:
            return make()
        finally:
            keras.config.set_dtype_policy(before)

    return build


def _dense(optimizer: Any = "adam", width: int = 2048) -> Callable[[], keras.Model]:
    def make() -> keras.Model:
        hidden = [layers.Dense(units, activation="relu") for units in (width, width, 1024)]
        outputs = layers.Dense(100, activation="softmax", dtype="float32")
        return compiled(keras.Sequential([keras.Input((1024,)), *hidden, outputs]), optimizer)

    return make


def _convolutional() -> keras.Model:
    parts = [keras.Input((48, 48, 3))]
    for filters in (32, 64, 128):
        parts += [layers.Conv2D(filters, 3, padding="same"), layers.BatchNormalization()]
        parts += [layers.ReLU(), layers.MaxPooling2D()]
    parts += [layers.Flatten(), layers.Dense(10, activation="softmax", dtype="float32")]
    return compiled(keras.Sequential(parts))


def _attending() -> keras.Model:
    inputs = keras.Input((64,), dtype="int32")
    x = layers.Embedding(8000, 256)(inputs)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 64)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(256)(layers.Dense(1024, activation="gelu")(x)))
    outputs = layers.Dense(8000, activation="softmax", dtype="float32")(x)
    return compiled(keras.Model(inputs, outputs), "adamw")


def _recurrent() -> keras.Model:
    parts = [keras.Input((30, 64)), layers.LSTM(384), layers.Dense(4, dtype="float32")]
    return compiled(keras.Sequential(parts), "adam", "mse")


def _of(name: str, build: Build, batch_size: int, vocabulary: int = 2) -> Configuration:
    return Configuration(name, "mixed precision", build, batch_size, vocabulary=vocabulary)


CONFIGURATIONS = [
    _of("MLP, mixed_float16, batch 64", _under("mixed_float16", _dense()), 64),
    _of("MLP, mixed_bfloat16, batch 64", _under("mixed_bfloat16", _dense()), 64),
    _of("MLP, mixed_float16, SGD, batch 16", _under("mixed_float16", _dense("sgd")), 16),
    _of("large MLP, mixed_bfloat16, batch 16", _under("mixed_bfloat16", _dense("adam", 4096)), 16),
    _of("CNN, mixed_float16, batch 16", _under("mixed_float16", _convolutional), 16),
    _of("CNN, mixed_bfloat16, batch 16", _under("mixed_bfloat16", _convolutional), 16),
    _of("transformer, mixed_bfloat16, batch 4", _under("mixed_bfloat16", _attending), 4, 8000),
    _of("LSTM, mixed_bfloat16, batch 16", _under("mixed_bfloat16", _recurrent), 16),
]
