"""A change to a training: how its model is made, compiled and fed otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras

from tensorboard_plugin_memest.estimation.keras_state import untouched_objects
from tensorboard_plugin_memest.estimation.training import used_by

Edit = Callable[[keras.Model], keras.Model]
Around = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True)
class Change:
    """What differs from the training as it is; None and empty for what stays.

    Attributes:
        optimizer: makes the optimizer to train with.
        edits: each takes the model as it was made and returns it changed, or another.
        around: contexts in which the model is made.
        batch_size: examples a step.
        mode: how steps run, `"graph"`, `"xla"` or `"eager"`.
        validation_batch_size: examples a step of evaluation.
        callbacks: takes those of `fit` and returns them changed.
        keeps_inputs: whether the model takes what it took.
    """

    optimizer: Callable[[], Any] | None = None
    edits: tuple[Edit, ...] = field(default=())
    around: tuple[Around, ...] = field(default=())
    batch_size: int | None = None
    mode: str | None = None
    validation_batch_size: int | None = None
    callbacks: Callable[[Sequence[Any]], Sequence[Any]] | None = None
    keeps_inputs: bool = True

    def with_also(self, other: Change) -> Change:
        """Both changes at once; where both change one thing, `other` wins."""
        return Change(
            optimizer=other.optimizer or self.optimizer,
            edits=(*self.edits, *other.edits),
            around=(*self.around, *other.around),
            batch_size=other.batch_size or self.batch_size,
            mode=other.mode or self.mode,
            validation_batch_size=other.validation_batch_size or self.validation_batch_size,
            callbacks=other.callbacks or self.callbacks,
            keeps_inputs=self.keeps_inputs and other.keeps_inputs,
        )

    @property
    def is_to_the_model(self) -> bool:
        """Whether the model itself is made otherwise."""
        return bool(self.edits or self.around)

    def applied_to(self, build: Callable[[], keras.Model]) -> Callable[[], keras.Model]:
        """`build` with the changes to the model."""

        def changed() -> keras.Model:
            with contextlib.ExitStack() as stack:
                for enter in self.around:
                    stack.enter_context(enter())
                with contextlib.ExitStack() as before:
                    before.enter_context(untouched_objects(used_by(build)))
                    model = made = build()
                    for edit in self.edits:
                        made = edit(made)
                    if made is model or _share_layers(model, made):
                        # Whoever called this puts them back when the estimate is made.
                        before.pop_all()
                # Else layers that building uses again let go of the weights of a model that is none of the training.
                return made

        return changed


def _share_layers(model: keras.Model, other: keras.Model) -> bool:
    ids = {id(layer) for layer in model._flatten_layers() if layer.weights}
    return any(id(layer) in ids for layer in other._flatten_layers())


@contextlib.contextmanager
def dtype_policy(name: str) -> Iterator[None]:
    """Inside, layers are made with this policy unless they say otherwise."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
