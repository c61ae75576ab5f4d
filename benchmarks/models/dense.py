"""Networks of dense layers."""

from __future__ import annotations

import keras
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled


def _plain(widths: tuple[int, ...], optimizer: str = "adam", inputs: int = 1024) -> Build:
    def build() -> keras.Model:
        hidden = [layers.Dense(units, activation="relu") for units in widths]
        return compiled(keras.Sequential([keras.Input((inputs,)), *hidden, layers.Dense(10)]), optimizer, _loss())

    return build


def _loss() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _regularized() -> keras.Model:
    parts = [keras.Input((784,))]
    for units in (2048, 1024, 512):
        parts += [layers.Dense(units, kernel_regularizer=keras.regularizers.L2(1e-4), use_bias=False)]
        parts += [layers.BatchNormalization(), layers.Activation("gelu"), layers.Dropout(0.4)]
    return compiled(keras.Sequential([*parts, layers.Dense(10, activation="softmax")]), "adam", metrics=["accuracy"])


def _self_normalizing() -> keras.Model:
    hidden = [
        layers.Dense(1200, activation="selu", kernel_initializer="lecun_normal", kernel_constraint="max_norm")
        for _ in range(4)
    ]
    parts = [keras.Input((600,)), layers.GaussianNoise(0.1), *hidden, layers.AlphaDropout(0.1), layers.Dense(1)]
    return compiled(keras.Sequential(parts), "rmsprop", "mse")


def _orthogonal() -> keras.Model:
    parts = [keras.Input((1500,)), layers.Dense(1500, kernel_initializer="orthogonal", activation="tanh")]
    return compiled(keras.Sequential([*parts, layers.Dense(1500, kernel_initializer="he_normal")]), "adam", "mse")


def _of(name: str, build: Build, batch_size: int) -> Configuration:
    return Configuration(name, "MLP", build, batch_size)


CONFIGURATIONS = [
    _of("wide MLP, Adam, batch 64", _plain((4096, 2048, 4096, 1024)), 64),
    _of("wide MLP, SGD, batch 1", _plain((4096, 4096, 2048), "sgd"), 1),
    _of("deep MLP, Adam, batch 32", _plain((1024,) * 8), 32),
    _of("one large layer, Adam, batch 2", _plain((2048,), inputs=12_288), 2),
    _of("regularized MLP, batch 64", _regularized, 64),
    _of("self-normalizing MLP, RMSprop, batch 64", _self_normalizing, 64),
    _of("orthogonal MLP, batch 16", _orthogonal, 16),
]
