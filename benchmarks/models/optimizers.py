"""Every optimizer of Keras, with its options, on one network of dense layers and one of convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled

FAMILY = "optimizers"

_optimizers = keras.optimizers


def _dense(optimizer: Callable[[], Any]) -> Build:
    def build() -> keras.Model:
        hidden = [layers.Dense(units, activation="relu") for units in (1536, 2048, 1024)]
        model = keras.Sequential([keras.Input((1024,)), *hidden, layers.Dense(10, activation="softmax")])
        return compiled(model, optimizer())

    return build


def _convolutional(optimizer: Callable[[], Any]) -> Build:
    def build() -> keras.Model:
        parts = [keras.Input((40, 40, 3))]
        for filters in (32, 64, 128):
            parts += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
        parts += [layers.Flatten(), layers.Dense(1024, activation="relu"), layers.Dense(10, activation="softmax")]
        return compiled(keras.Sequential(parts), optimizer())

    return build


_DENSE: dict[str, Callable[[], Any]] = {
    "SGD": lambda: _optimizers.SGD(0.1),
    "SGD, momentum": lambda: _optimizers.SGD(0.1, momentum=0.9),
    "SGD, Nesterov": lambda: _optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "RMSprop, centered, momentum": lambda: _optimizers.RMSprop(centered=True, momentum=0.9),
    "Adam, AMSGrad": lambda: _optimizers.Adam(amsgrad=True),
    "Adam, EMA": lambda: _optimizers.Adam(use_ema=True),
    "Adam, accumulating": lambda: _optimizers.Adam(gradient_accumulation_steps=4),
    "Adam, clipnorm": lambda: _optimizers.Adam(clipnorm=1.0),
    "Adam, clipvalue": lambda: _optimizers.Adam(clipvalue=0.5),
    "Adam, global_clipnorm": lambda: _optimizers.Adam(global_clipnorm=1.0),
    "Adam, loss scaling": lambda: _optimizers.LossScaleOptimizer(_optimizers.Adam()),
    "Adam, schedule": lambda: _optimizers.Adam(_optimizers.schedules.CosineDecay(1e-3, 1000)),
    "AdamW, weight decay": lambda: _optimizers.AdamW(weight_decay=0.01),
    "Adadelta": lambda: _optimizers.Adadelta(),
    "Adagrad": lambda: _optimizers.Adagrad(),
    "Adamax": lambda: _optimizers.Adamax(),
    "Nadam": lambda: _optimizers.Nadam(),
    "Ftrl": lambda: _optimizers.Ftrl(),
    "Lion": lambda: _optimizers.Lion(),
    "Adafactor": lambda: _optimizers.Adafactor(),
    "Lamb": lambda: _optimizers.Lamb(),
    "Muon": lambda: _optimizers.Muon(),
}

_CONVOLUTIONAL: dict[str, Callable[[], Any]] = {
    "SGD": lambda: _optimizers.SGD(0.1),
    "Adam": lambda: _optimizers.Adam(),
    "SGD, momentum, weight decay": lambda: _optimizers.SGD(0.1, momentum=0.9, weight_decay=1e-4),
    "SGD, accumulating": lambda: _optimizers.SGD(0.1, gradient_accumulation_steps=2),
    "AdamW, EMA, global_clipnorm": lambda: _optimizers.AdamW(use_ema=True, global_clipnorm=1.0),
}

CONFIGURATIONS = [
    *(Configuration(f"dense, {name}, batch 32", FAMILY, _dense(make), 32) for name, make in _DENSE.items()),
    *(
        Configuration(f"convolutional, {name}, batch 32", FAMILY, _convolutional(make), 32)
        for name, make in _CONVOLUTIONAL.items()
    ),
]
