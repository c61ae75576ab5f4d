"""Optimizers to train with instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras


@dataclass(frozen=True)
class OptimizerChoice:
    """An optimizer, what it costs and how it is written.

    Attributes:
        name: short and unique.
        title: as people call it.
        make: makes one.
        code: the same in a script.
        cost: what it costs, in words.
    """

    name: str
    title: str
    make: Callable[[], Any]
    code: str
    cost: str

    def is_like(self, optimizer: Any) -> bool:
        """Whether `optimizer` is one of these already."""
        if type(optimizer) is not type(self.make()):
            return False
        return bool(getattr(optimizer, "momentum", 0)) == bool(getattr(self.make(), "momentum", 0))


OPTIMIZERS = (
    OptimizerChoice(
        "sgd",
        "SGD",
        lambda: keras.optimizers.SGD(0.01),
        "keras.optimizers.SGD(learning_rate=0.01)",
        "No memory per weight; the learning rate has to be tuned and training usually takes more epochs.",
    ),
    OptimizerChoice(
        "sgd_momentum",
        "SGD with momentum",
        lambda: keras.optimizers.SGD(0.01, momentum=0.9),
        "keras.optimizers.SGD(learning_rate=0.01, momentum=0.9)",
        "One copy of the weights; the learning rate has to be tuned.",
    ),
    OptimizerChoice(
        "adafactor",
        "Adafactor",
        lambda: keras.optimizers.Adafactor(0.001),
        "keras.optimizers.Adafactor(learning_rate=0.001)",
        "Keeps sums of rows and columns instead of a second moment for each weight; converges a bit differently.",
    ),
    OptimizerChoice(
        "lion",
        "Lion",
        lambda: keras.optimizers.Lion(0.0001),
        "keras.optimizers.Lion(learning_rate=0.0001)",
        "One copy of the weights; wants a learning rate three to ten times smaller than Adam's.",
    ),
)

ADAM = OptimizerChoice(
    "adam",
    "Adam",
    lambda: keras.optimizers.Adam(0.001),
    "keras.optimizers.Adam(learning_rate=0.001)",
    "Two copies of the weights; needs the least tuning.",
)
