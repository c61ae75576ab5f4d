"""Convolutional networks with branches: residual, dense, squeeze-and-excite, inception, ConvNeXt."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled


def _head(x: Any, classes: int = 10) -> Any:
    return layers.Dense(classes, activation="softmax")(layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x)))


def _residual(optimizer: Any = "sgd", size: int = 64, widths: tuple[int, ...] = (32, 64, 128)) -> Build:
    def build() -> keras.Model:
        inputs = keras.Input((size, size, 3))
        x = layers.Conv2D(32, 3, padding="same")(inputs)
        for filters in widths:
            shortcut = layers.Conv2D(filters, 1, strides=2)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
            x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
            x = layers.Conv2D(filters, 3, padding="same")(x)
            x = layers.Add()([shortcut, x])
        chosen = optimizer() if callable(optimizer) else optimizer
        return compiled(keras.Model(inputs, _head(x)), chosen)

    return build


def _bottleneck() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    x = layers.Conv2D(64, 7, strides=2, padding="same", use_bias=False)(inputs)
    for filters, strides in ((64, 1), (64, 1), (128, 2), (128, 1)):
        y = x
        for width, kernel, step in ((filters, 1, strides), (filters, 3, 1), (4 * filters, 1, 1)):
            y = layers.Conv2D(width, kernel, strides=step, padding="same", use_bias=False)(y)
            y = layers.BatchNormalization()(y)
            y = layers.Activation("relu")(y) if kernel == 3 or width == filters else y
        if x.shape[-1] != 4 * filters or strides != 1:
            x = layers.BatchNormalization()(layers.Conv2D(4 * filters, 1, strides=strides, use_bias=False)(x))
        x = layers.Activation("relu")(x + y)
    return compiled(keras.Model(inputs, _head(x, 100)), "adam")


def _densely_connected() -> keras.Model:
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(24, 3, padding="same")(inputs)
    for block in range(3):
        for _ in range(4):
            y = layers.Conv2D(12, 3, padding="same")(layers.ReLU()(layers.BatchNormalization()(x)))
            x = layers.Concatenate()([x, y])
        if block < 2:
            x = layers.AveragePooling2D(2)(layers.Conv2D(x.shape[-1] // 2, 1)(x))
    return compiled(keras.Model(inputs, _head(x)), "rmsprop")


def _squeezing() -> keras.Model:
    inputs = keras.Input((48, 48, 3))
    x = layers.Conv2D(32, 3, padding="same", activation="swish")(inputs)
    for filters in (32, 64, 96):
        y = layers.Conv2D(4 * filters, 1, activation="swish")(x)
        y = layers.DepthwiseConv2D(3, padding="same", activation="swish")(y)
        gate = layers.Dense(filters, activation="swish")(layers.GlobalAveragePooling2D()(y))
        gate = layers.Dense(4 * filters, activation="sigmoid")(gate)
        y = layers.Conv2D(filters, 1)(layers.Multiply()([y, layers.Reshape((1, 1, 4 * filters))(gate)]))
        x = layers.Add()([x, y]) if x.shape[-1] == filters else y
        x = layers.MaxPooling2D()(x)
    return compiled(keras.Model(inputs, _head(x)), "adamw")


def _inception() -> keras.Model:
    inputs = keras.Input((48, 48, 3))
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(inputs)
    for filters in (16, 32):
        branches = [
            layers.Conv2D(filters, 1, activation="relu")(x),
            layers.Conv2D(filters, 3, padding="same", activation="relu")(layers.Conv2D(filters, 1)(x)),
            layers.Conv2D(filters, 5, padding="same", activation="relu")(layers.Conv2D(filters, 1)(x)),
            layers.Conv2D(filters, 1)(layers.MaxPooling2D(3, strides=1, padding="same")(x)),
        ]
        x = layers.MaxPooling2D()(layers.Concatenate()(branches))
    return compiled(keras.Model(inputs, _head(x)), "adagrad")


def _next_generation() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    x = layers.LayerNormalization()(layers.Conv2D(64, 4, strides=4)(inputs))
    for _ in range(3):
        y = layers.LayerNormalization()(layers.DepthwiseConv2D(7, padding="same")(x))
        y = layers.Dense(64)(layers.Dense(256, activation="gelu")(y))
        x = x + y
    return compiled(keras.Model(inputs, _head(x)), "adamw")


def _grouped() -> keras.Model:
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(64, 3, padding="same")(inputs)
    for _ in range(2):
        y = layers.GroupNormalization(8)(layers.Conv2D(64, 3, padding="same")(x))
        x = layers.Add()([x, layers.PReLU(shared_axes=(1, 2))(y)])
    return compiled(keras.Model(inputs, _head(x)), "adam")


def _of(name: str, build: Build, batch_size: int) -> Configuration:
    return Configuration(name, "residual CNN", build, batch_size)


CONFIGURATIONS = [
    _of("residual CNN, SGD, batch 32", _residual(), 32),
    _of("residual CNN, momentum, batch 8", _residual(lambda: keras.optimizers.SGD(0.1, 0.9)), 8),
    _of("residual CNN, Adam, batch 64", _residual("adam", 32), 64),
    _of("residual CNN, large image, SGD, batch 32", _residual(size=128), 32),
    _of("residual CNN, wide, Adam, batch 1", _residual("adam", 128, (64, 128, 256, 512)), 1),
    _of("bottleneck ResNet, batch 8", _bottleneck, 8),
    _of("densely connected CNN, batch 32", _densely_connected, 32),
    _of("squeeze and excite, batch 8", _squeezing, 8),
    _of("inception, Adagrad, batch 16", _inception, 16),
    _of("ConvNeXt-like, batch 16", _next_generation, 16),
    _of("group normalization, batch 16", _grouped, 16),
]
