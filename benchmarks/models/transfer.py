"""Transfer learning: frozen parts, in whole or in part, and added low-rank weights."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled


def _frozen(make: Any, size: int, thawed: int = 0, optimizer: Any = "adam", **options: Any) -> Build:
    def build() -> keras.Model:
        base = make(weights=None, include_top=False, input_shape=(size, size, 3), **options)
        base.trainable = thawed > 0
        for layer in base.layers[: -thawed or None]:
            layer.trainable = False
        inputs = keras.Input((size, size, 3))
        # Frozen normalizations are called as in inference.
        x = layers.GlobalAveragePooling2D()(base(layers.Rescaling(1 / 127.5, -1)(inputs), training=False))
        outputs = layers.Dense(5, activation="softmax")(layers.Dropout(0.2)(x))
        return compiled(keras.Model(inputs, outputs), optimizer)

    return build


def _frozen_embedding() -> keras.Model:
    parts = [keras.Input((64,), dtype="int32"), layers.Embedding(50_000, 128, trainable=False)]
    parts += [layers.Conv1D(128, 5, activation="relu"), layers.GlobalMaxPooling1D()]
    return compiled(keras.Sequential([*parts, layers.Dense(20, activation="softmax")]), "rmsprop")


def _low_rank() -> keras.Model:
    hidden = [layers.Dense(2048, activation="relu") for _ in range(3)]
    model = keras.Sequential([keras.Input((1024,)), *hidden, layers.Dense(10, activation="softmax")])
    for layer in hidden:
        layer.enable_lora(8)
    return compiled(model, "adamw")


def _of(name: str, build: Build, batch_size: int, vocabulary: int = 2) -> Configuration:
    return Configuration(name, "transfer learning", build, batch_size, vocabulary=vocabulary)


_applications = keras.applications

CONFIGURATIONS = [
    _of("frozen MobileNetV2, batch 16", _frozen(_applications.MobileNetV2, 96), 16),
    _of("frozen ResNet50, batch 4", _frozen(_applications.ResNet50, 64), 4),
    _of("VGG16, last layers thawed, batch 4", _frozen(_applications.VGG16, 64, thawed=4), 4),
    _of("frozen embedding, batch 32", _frozen_embedding, 32, 50_000),
    _of("LoRA, batch 32", _low_rank, 32),
]
