"""What is measured and estimated: a model, how it is trained, and the batch it is fed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import keras

Build = Callable[[], keras.Model]


@dataclass(frozen=True)
class Trained:
    """What is trained.

    Attributes:
        name: unique.
        family: the group it is reported under.
    """

    name: str
    family: str


@dataclass(frozen=True)
class Configuration(Trained):
    """A model that is trained.

    Attributes:
        build: makes the model, compiled.
        batch_size: examples a step.
        inputs: structure of `tf.TensorSpec`s with an open batch, where the model does not say what it takes.
        targets: the same for the targets, where they do not follow from a single output and its loss; `()` for none.
        vocabulary: integer inputs are drawn below this.
    """

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


Some = TypeVar("Some", bound=Trained)


def by_turns(trained: Iterable[Some]) -> list[Some]:
    """One of each family after another, so that any beginning of the list has some of all."""
    families: dict[str, list[Some]] = {}
    for one in trained:
        families.setdefault(one.family, []).append(one)
    rounds = itertools.zip_longest(*families.values())
    return [one for some in rounds for one in some if one is not None]
