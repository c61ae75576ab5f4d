"""Transformers for text and for images, and what came of them."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops

from benchmarks.configuration import Build, Configuration, compiled


class _Positions(layers.Layer):  # type: ignore[misc]
    """Adds a learned embedding of the position."""

    def build(self, shape: Any) -> None:
        self.positions = self.add_weight(shape=shape[1:], initializer="random_normal", name="positions")

    def call(self, x: Any) -> Any:
        return x + self.positions


def _block(x: Any, width: int, heads: int, *, causal: bool = False, before: bool = True, dropout: float = 0.0) -> Any:
    y = layers.LayerNormalization()(x) if before else x
    y = layers.MultiHeadAttention(heads, width // heads, dropout=dropout)(y, y, use_causal_mask=causal)
    x = x + y if before else layers.LayerNormalization()(x + y)
    y = layers.LayerNormalization()(x) if before else x
    y = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))
    y = layers.Dropout(dropout)(y) if dropout else y
    return x + y if before else layers.LayerNormalization()(x + y)


def _encoder(vocabulary: int, steps: int, width: int, depth: int, optimizer: Any = "adamw", **options: Any) -> Build:
    def build() -> keras.Model:
        inputs = keras.Input((steps,), dtype="int32")
        x = _Positions()(layers.Embedding(vocabulary, width)(inputs))
        for _ in range(depth):
            x = _block(x, width, 4, **options)
        outputs = layers.Dense(vocabulary, activation="softmax")(x)
        return compiled(keras.Model(inputs, outputs), optimizer() if callable(optimizer) else optimizer)

    return build


def _classifier() -> keras.Model:
    inputs = keras.Input((200,), dtype="int32")
    x = _Positions()(layers.Embedding(20_000, 64)(inputs))
    x = _block(x, 64, 2, before=False, dropout=0.1)
    x = layers.Dense(20, activation="relu")(layers.Dropout(0.1)(layers.GlobalAveragePooling1D()(x)))
    return compiled(keras.Model(inputs, layers.Dense(2, activation="softmax")(x)))


def _vision(size: int, patch: int, width: int, depth: int, optimizer: str = "adamw") -> Build:
    def build() -> keras.Model:
        inputs = keras.Input((size, size, 3))
        x = layers.Conv2D(width, patch, strides=patch)(inputs)
        x = _Positions()(layers.Reshape((-1, width))(x))
        for _ in range(depth):
            x = _block(x, width, 4, dropout=0.1)
        x = layers.LayerNormalization()(x)
        outputs = layers.Dense(100, activation="softmax")(ops.mean(x, axis=1))
        return compiled(keras.Model(inputs, outputs), optimizer)

    return build


def _mixer() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    x = layers.Reshape((64, 192))(layers.Conv2D(192, 8, strides=8)(inputs))
    for _ in range(4):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(64)(layers.Dense(128, activation="gelu")(y))
        x = x + layers.Permute((2, 1))(y)
        y = layers.Dense(192)(layers.Dense(768, activation="gelu")(layers.LayerNormalization()(x)))
        x = x + y
    outputs = layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling1D()(x))
    return compiled(keras.Model(inputs, outputs))


def _translator() -> keras.Model:
    source, target = keras.Input((48,), dtype="int32"), keras.Input((40,), dtype="int32")
    embedding = layers.Embedding(6000, 192)
    encoded = _block(_Positions()(embedding(source)), 192, 4)
    x = _block(_Positions()(embedding(target)), 192, 4, causal=True)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 48)(x, encoded))
    return compiled(keras.Model([source, target], layers.Dense(6000, activation="softmax")(x)), "adam")


def _grouped_queries() -> keras.Model:
    inputs = keras.Input((96,), dtype="int32")
    x = layers.Embedding(4000, 256)(inputs)
    for _ in range(2):
        y = layers.RMSNormalization()(x)
        x = x + layers.GroupQueryAttention(64, 4, 2)(y, y, use_causal_mask=True)
        y = layers.RMSNormalization()(x)
        gated = layers.Multiply()([layers.Dense(512, activation="silu")(y), layers.Dense(512)(y)])
        x = x + layers.Dense(256)(gated)
    return compiled(keras.Model(inputs, layers.Dense(4000)(x)), "lion", _from_logits())


def _from_logits() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _of(name: str, build: Build, batch_size: int, vocabulary: int = 2) -> Configuration:
    return Configuration(name, "transformer", build, batch_size, vocabulary=vocabulary)


CONFIGURATIONS = [
    _of("transformer, AdamW, batch 8", _encoder(8000, 128, 256, 3, before=False), 8, 8000),
    _of("causal transformer, Adam, batch 4", _encoder(12_000, 96, 256, 3, "adam", causal=True, dropout=0.1), 4, 12_000),
    _of("transformer, 30k words, Adam, batch 4", _encoder(30_000, 64, 256, 2, "adam"), 4, 30_000),
    _of("transformer, Adafactor, batch 2", _encoder(8000, 128, 384, 2, "adafactor"), 2, 8000),
    _of("transformer, SGD, batch 1", _encoder(16_000, 64, 384, 2, "sgd"), 1, 16_000),
    _of(
        "transformer, clipped by global norm, batch 8",
        _encoder(5000, 64, 192, 2, lambda: keras.optimizers.Adam(1e-3, global_clipnorm=1.0)),
        8,
        5000,
    ),
    _of("text classifier, batch 32", _classifier, 32, 20_000),
    _of("ViT, batch 16", _vision(64, 8, 192, 4), 16),
    _of("ViT, fine patches, batch 4", _vision(64, 4, 128, 4, "adam"), 4),
    _of("MLP mixer, batch 16", _mixer, 16),
    _of("translator, batch 4", _translator, 4, 6000),
    _of("grouped queries, Lion, batch 4", _grouped_queries, 4, 4000),
]
