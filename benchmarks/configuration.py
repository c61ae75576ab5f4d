"""What is measured and estimated: a model, how it is trained, and the batch it is fed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import keras

Build = Callable[[], keras.Model]


@dataclass(frozen=True)
class Configuration:
    """One training.

    Attributes:
        name: unique.
        family: the group it is reported under.
        build: makes the model, compiled.
        batch_size: examples a step.
        inputs: structure of `tf.TensorSpec`s with an open batch, where the model does not say what it takes.
        targets: the same for the targets, where they do not follow from a single output and its loss; `()` for none.
        vocabulary: integer inputs are drawn below this.
    """

    name: str
    family: str
    build: Build
    batch_size: int
    inputs: Any = None
    targets: Any = None
    vocabulary: int = 2


def compiled(
    model: keras.Model, optimizer: Any = "adam", loss: Any = "sparse_categorical_crossentropy", **options: Any
) -> keras.Model:
    """`model`, compiled for graph mode."""
    model.compile(optimizer, loss, jit_compile=False, **options)
    return model


def by_turns(configurations: Iterable[Configuration]) -> list[Configuration]:
    """One of each family after another, so that any beginning of the list has some of all."""
    families: dict[str, list[Configuration]] = {}
    for configuration in configurations:
        families.setdefault(configuration.family, []).append(configuration)
    rounds = itertools.zip_longest(*families.values())
    return [configuration for some in rounds for configuration in some if configuration is not None]
