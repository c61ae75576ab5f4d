"""Plain convolutional networks, the founding example among them."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled


def _founding(dense: int, optimizer: Any = "adam", size: tuple[int, int] = (1491, 257), pool: int = 1) -> Build:
    def build() -> keras.Model:
        parts = [keras.Input((*size, 1)), *(layers.Conv2D(16, 3, activation="relu") for _ in range(2))]
        parts += [layers.MaxPooling2D(pool)] if pool > 1 else []
        parts += [layers.Flatten(), layers.Dense(dense, activation="relu"), layers.Dense(1, activation="sigmoid")]
        return compiled(keras.Sequential(parts), optimizer, "binary_crossentropy", metrics=["accuracy"])

    return build


def _vgg() -> keras.Model:
    parts = [keras.Input((64, 64, 3))]
    for filters in (32, 64, 128, 256):
        parts += [layers.Conv2D(filters, 3, padding="same", activation="relu") for _ in range(2)]
        parts += [layers.MaxPooling2D()]
    parts += [layers.Flatten(), layers.Dense(1024, activation="relu"), layers.Dropout(0.5)]
    return compiled(keras.Sequential([*parts, layers.Dense(100, activation="softmax")]))


def _normalized() -> keras.Model:
    parts = [keras.Input((32, 32, 3)), layers.Rescaling(1 / 255)]
    for filters in (32, 64, 128):
        parts += [layers.Conv2D(filters, 3, padding="same", use_bias=False), layers.BatchNormalization()]
        parts += [layers.ReLU(), layers.MaxPooling2D(), layers.Dropout(0.2)]
    parts += [layers.Flatten(), layers.Dense(256, activation="relu"), layers.Dense(10)]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return compiled(keras.Sequential(parts), "rmsprop", loss, metrics=["accuracy"])


def _separable() -> keras.Model:
    parts = [keras.Input((96, 96, 3)), layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")]
    for filters in (64, 128, 256):
        parts += [layers.SeparableConv2D(filters, 3, padding="same"), layers.BatchNormalization()]
        parts += [layers.Activation("swish"), layers.AveragePooling2D(2)]
    parts += [layers.GlobalMaxPooling2D(), layers.Dense(20, activation="softmax")]
    return compiled(keras.Sequential(parts), "nadam")


def _dilated() -> keras.Model:
    parts = [keras.Input((96, 96, 1))]
    parts += [layers.Conv2D(24, 3, dilation_rate=rate, padding="same", activation="elu") for rate in (1, 2, 4, 8)]
    parts += [layers.Conv2D(1, 1)]
    return compiled(keras.Sequential(parts), "adam", "mae")


def _audio() -> keras.Model:
    parts = [keras.Input((8000, 1))]
    for filters, kernel in ((64, 80), (64, 3), (128, 3), (256, 3)):
        parts += [layers.Conv1D(filters, kernel, strides=2, padding="same"), layers.BatchNormalization()]
        parts += [layers.LeakyReLU(), layers.MaxPooling1D(2)]
    parts += [layers.GlobalAveragePooling1D(), layers.Dense(35, activation="softmax")]
    return compiled(keras.Sequential(parts))


def _wavenet() -> keras.Model:
    inputs = keras.Input((2000, 16))
    x = layers.Conv1D(32, 1)(inputs)
    skips = []
    for rate in (1, 2, 4, 8, 16):
        gated = layers.Multiply()(
            [
                layers.Conv1D(32, 2, dilation_rate=rate, padding="causal", activation="tanh")(x),
                layers.Conv1D(32, 2, dilation_rate=rate, padding="causal", activation="sigmoid")(x),
            ]
        )
        skips.append(layers.Conv1D(64, 1)(gated))
        x = layers.Add()([x, layers.Conv1D(32, 1)(gated)])
    x = layers.ReLU()(layers.Add()(skips))
    return compiled(keras.Model(inputs, layers.Conv1D(256, 1, activation="softmax")(x)), "adamw")


def _volumes() -> keras.Model:
    parts = [keras.Input((24, 48, 48, 1))]
    for filters in (16, 32, 64):
        parts += [layers.Conv3D(filters, 3, padding="same", activation="relu"), layers.MaxPooling3D()]
    parts += [layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(1)]
    return compiled(keras.Sequential(parts), "adam", "mse")


def _of(name: str, build: Build, batch_size: int) -> Configuration:
    return Configuration(name, "plain CNN", build, batch_size)


CONFIGURATIONS = [
    _of("founding, Dense 8, Adam", _founding(8), 1),
    _of("founding, Dense 8, SGD", _founding(8, "sgd"), 1),
    _of("founding pooled, Dense 64, Adam", _founding(64, pool=4), 1),
    _of("founding halved, Dense 16, Adam, batch 4", _founding(16, size=(745, 128)), 4),
    _of("founding halved, Dense 16, RMSprop, batch 8", _founding(16, "rmsprop", (745, 128), 2), 8),
    _of("founding halved, Dense 12, AdamW, batch 2", _founding(12, "adamw", (745, 128)), 2),
    _of("founding halved, Dense 24, Adagrad, batch 1", _founding(24, "adagrad", (745, 128)), 1),
    _of("VGG-like, batch 16", _vgg, 16),
    _of("CIFAR CNN with batch normalization, batch 64", _normalized, 64),
    _of("separable CNN, Nadam, batch 16", _separable, 16),
    _of("dilated CNN, batch 8", _dilated, 8),
    _of("audio Conv1D, batch 16", _audio, 16),
    _of("WaveNet-like, batch 4", _wavenet, 4),
    _of("Conv3D classifier, batch 4", _volumes, 4),
]
