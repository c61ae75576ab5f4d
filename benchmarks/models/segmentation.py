"""U-Nets in two and three dimensions, and other networks with an image for an output."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled


def _u_net(
    size: tuple[int, ...], widths: tuple[int, ...], *, normalized: bool, transposed: bool, optimizer: Any = "adam"
) -> Build:
    def build() -> keras.Model:
        dimensions = len(size)
        convolution = {2: layers.Conv2D, 3: layers.Conv3D}[dimensions]
        pooling = {2: layers.MaxPooling2D, 3: layers.MaxPooling3D}[dimensions]
        enlarging = {2: layers.UpSampling2D, 3: layers.UpSampling3D}[dimensions]
        transposing = {2: layers.Conv2DTranspose, 3: layers.Conv3DTranspose}[dimensions]

        def twice(x: Any, filters: int) -> Any:
            for _ in range(2):
                x = convolution(filters, 3, padding="same", use_bias=not normalized)(x)
                x = layers.BatchNormalization()(x) if normalized else x
                x = layers.Activation("relu")(x)
            return x

        inputs = keras.Input((*size, 1))
        x, skips = inputs, []
        for filters in widths[:-1]:
            x = twice(x, filters)
            skips.append(x)
            x = pooling()(x)
        x = twice(x, widths[-1])
        for filters, skip in zip(reversed(widths[:-1]), reversed(skips), strict=True):
            x = transposing(filters, 2, strides=2)(x) if transposed else convolution(filters, 1)(enlarging()(x))
            x = twice(layers.Concatenate()([skip, x]), filters)
        outputs = convolution(1, 1, activation="sigmoid")(x)
        return compiled(keras.Model(inputs, outputs), optimizer, "binary_crossentropy")

    return build


def _pyramid() -> keras.Model:
    inputs = keras.Input((96, 96, 3))
    x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(inputs)
    rates = [layers.Conv2D(32, 3, dilation_rate=rate, padding="same", activation="relu")(x) for rate in (1, 3, 6)]
    pooled = layers.GlobalAveragePooling2D(keepdims=True)(x)
    pooled = layers.UpSampling2D(48, interpolation="bilinear")(layers.Conv2D(32, 1)(pooled))
    x = layers.Conv2D(64, 1, activation="relu")(layers.Concatenate()([*rates, pooled]))
    outputs = layers.Conv2D(21, 1, activation="softmax")(layers.UpSampling2D(2, interpolation="bilinear")(x))
    return compiled(keras.Model(inputs, outputs), "sgd")


def _super_resolution() -> keras.Model:
    inputs = keras.Input((48, 48, 3))
    x = layers.Conv2D(64, 5, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(32, 4, strides=2, padding="same", activation="relu")(x)
    return compiled(keras.Model(inputs, layers.Conv2D(3, 3, padding="same")(x)), "adam", "mse")


def _of(name: str, build: Build, batch_size: int) -> Configuration:
    return Configuration(name, "U-Net", build, batch_size)


CONFIGURATIONS = [
    _of("U-Net 2D, batch 4", _u_net((128, 128), (16, 32, 64, 128), normalized=False, transposed=True), 4),
    _of(
        "U-Net 2D, SGD, batch 20",
        _u_net((128, 128), (16, 32, 64), normalized=False, transposed=True, optimizer="sgd"),
        20,
    ),
    _of("U-Net 2D normalized, batch 2", _u_net((160, 160), (24, 48, 96), normalized=True, transposed=False), 2),
    _of(
        "U-Net 2D normalized, SGD, batch 8",
        _u_net((64, 64), (32, 64, 128), normalized=True, transposed=True, optimizer="sgd"),
        8,
    ),
    _of("U-Net 2D large image, batch 1", _u_net((384, 384), (8, 16, 32, 64), normalized=False, transposed=False), 1),
    _of("U-Net 3D, batch 1", _u_net((32, 48, 48), (8, 16, 32), normalized=False, transposed=True), 1),
    _of("U-Net 3D normalized, batch 2", _u_net((16, 32, 32), (16, 32, 64), normalized=True, transposed=False), 2),
    _of("dilated pyramid, SGD, batch 4", _pyramid, 4),
    _of("super resolution, batch 8", _super_resolution, 8),
]
