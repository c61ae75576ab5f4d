"""What the caller of an estimate passed beside the model, and a model compiled as that wants it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from tensorboard_plugin_memest.estimation.device import CPU
from tensorboard_plugin_memest.estimation.replicas import Replicas
from tensorboard_plugin_memest.memory.errors import UsageError


@dataclass(frozen=True)
class Given:
    """Arguments of `estimate`; None for what was not given.

    Attributes:
        device: kind of the device that the estimate is for.
        validation_batch_size: examples a step of evaluation; None where that is not asked for.
        predict_batch_size: examples a step of prediction; None where that is not asked for.
        predict_examples: examples of a whole prediction; None for one batch.
        replicas: how the training is spread over devices; None for one device.
        exports: whether the run exports the model.
        stores: whether layers are asked for what is to be stored.
        one_size: whether the step is wanted for this batch size only, not for finding out how it depends on that.
    """

    batch_size: int | None = None
    optimizer: Any = None
    loss: Any = None
    inputs: Any = None
    targets: Any = None
    one_size: bool = False
    jit_compile: Any = None
    run_eagerly: bool = False
    device: str = CPU
    validation_batch_size: int | None = None
    predict_batch_size: int | None = None
    predict_examples: int | None = None
    replicas: Replicas | None = None
    exports: bool = False
    stores: bool = False

    @property
    def objects(self) -> list[Any]:
        """The caller's own objects that compiling may change."""
        return [self.optimizer, self.loss]


def compile_as_given(model: keras.Model, given: Given) -> list[str]:
    """Compiles `model` if it is not, or if the caller wants another optimizer or loss; what else it had stays.

    Returns:
        What had to be assumed.

    Raises:
        ValueError: there is no optimizer, or one of the arguments is none that Keras knows.
    """
    if model.compiled and given.optimizer is None and given.loss is None:
        return []
    optimizer = given.optimizer if given.optimizer is not None else getattr(model, "optimizer", None)
    if optimizer is None:
        raise UsageError(
            f"The model {model.name!r} has no optimizer: it is not compiled, or its own compile() keeps none under "
            "that name. Call model.compile(optimizer=..., loss=...) or pass optimizer= and loss=, for example "
            "optimizer='adam', loss='mse'. For prediction alone pass predict_batch_size=."
        )
    notes = []
    before = dict(vars(model))
    loss = given.loss if given.loss is not None else getattr(model, "loss", None)
    if loss is None and not model.compiled:
        loss = "mse"
        notes.append("No loss was given: mean squared error was assumed. Pass loss=.")
    try:
        for one in keras.tree.flatten(given.loss):
            # Keras looks names of losses up only when it meets the first targets, on which these two depend.
            if str(one).lower() not in ("crossentropy", "ce"):
                keras.losses.get(one)
        model.compile(optimizer=optimizer, loss=loss, jit_compile=False)
    except Exception as error:
        raise UsageError(
            f"The model {model.name!r} cannot be compiled with optimizer={optimizer!r} and loss={loss!r}: {error}. "
            "Pass what keras.Model.compile takes; a model whose compile() takes other arguments has to be compiled "
            "before, and neither optimizer= nor loss= passed here."
        ) from error
    if before["compiled"]:
        kept = ["_compile_metrics", "_jit_compile", "_run_eagerly", "steps_per_execution"]
        if given.loss is None:
            kept += ["_compile_loss", "loss"]
        vars(model).update({name: before[name] for name in kept if name in before})
    return notes
