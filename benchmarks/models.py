"""Models to estimate and to measure: name to a function that builds one, compiled, and its batch size."""

from __future__ import annotations

from collections.abc import Callable

import keras
from keras import layers

Build = Callable[[], keras.Model]


def _founding(dense: int, optimizer: str = "adam", pool: int = 1) -> Build:
    def build() -> keras.Model:
        parts = [keras.Input((1491, 257, 1))]
        parts += [layers.Conv2D(16, 3, activation="relu") for _ in range(2)]
        parts += [layers.MaxPooling2D(pool)] if pool > 1 else []
        parts += [layers.Flatten(), layers.Dense(dense, activation="relu"), layers.Dense(1, activation="sigmoid")]
        model = keras.Sequential(parts)
        model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"], jit_compile=False)
        return model

    return build


def _mlp() -> keras.Model:
    hidden = [layers.Dense(units, activation="relu") for units in (4096, 2048, 4096, 1024)]
    model = keras.Sequential([keras.Input((1024,)), *hidden, layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    return model


def _residual() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    x = layers.Conv2D(32, 3, padding="same")(inputs)
    for filters in (32, 64, 128):
        shortcut = layers.Conv2D(filters, 1, strides=2)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.Conv2D(filters, 3, padding="same")(x)
        x = layers.Add()([shortcut, x])
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, layers.Dense(10, activation="softmax")(x))
    model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
    return model


def _transformer() -> keras.Model:
    inputs = keras.Input((128,), dtype="int32")
    x = layers.Embedding(8000, 256)(inputs)
    for _ in range(3):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 64)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(256)(layers.Dense(1024, activation="gelu")(x)))
    model = keras.Model(inputs, layers.Dense(8000, activation="softmax")(x))
    model.compile("adamw", "sparse_categorical_crossentropy", jit_compile=False)
    return model


def _recurrent() -> keras.Model:
    parts = [layers.LSTM(512, return_sequences=True), layers.GRU(256), layers.Dense(10, activation="softmax")]
    model = keras.Sequential([keras.Input((48, 256)), *parts])
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    return model


def _recommender() -> keras.Model:
    inputs = keras.Input((20,), dtype="int32")
    x = layers.GlobalAveragePooling1D()(layers.Embedding(200_000, 64)(inputs))
    model = keras.Model(inputs, layers.Dense(1)(layers.Dense(64, activation="relu")(x)))
    model.compile("rmsprop", "mse", jit_compile=False)
    return model


MODELS: dict[str, tuple[Build, int]] = {
    "founding, Dense 8": (_founding(8), 1),
    "founding, Dense 16": (_founding(16), 1),
    "founding, Dense 8, SGD": (_founding(8, "sgd"), 1),
    "founding, pooled": (_founding(128, pool=4), 1),
    "wide MLP, Adam": (_mlp, 512),
    "residual CNN, SGD": (_residual, 32),
    "transformer, AdamW": (_transformer, 8),
    "LSTM and GRU, Adam": (_recurrent, 16),
    "embeddings, RMSprop": (_recommender, 256),
}
