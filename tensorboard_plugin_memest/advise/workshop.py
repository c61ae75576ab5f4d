"""Re-estimates a training with changes, as if the user had made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import context as tf_context
from tensorflow.python.framework import func_graph as tf_func_graph

from tensorboard_plugin_memest.advise.blueprint import Blueprint, blueprint_of
from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.advise.levers import proposals
from tensorboard_plugin_memest.advise.proposal import Proposal
from tensorboard_plugin_memest.advise.remake import remade
from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.deadline import TimeIsUp
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals, untouched_objects
from tensorboard_plugin_memest.estimation.mode import EAGER, XLA
from tensorboard_plugin_memest.estimation.model import Origin
from tensorboard_plugin_memest.estimation.optimizers import copied_optimizer
from tensorboard_plugin_memest.estimation.subject import input_specs
from tensorboard_plugin_memest.estimation.training import SMALL, used_by
from tensorboard_plugin_memest.memory.errors import reason_of
from tensorboard_plugin_memest.memory.estimate import Estimate

# What is known of a model that cannot be looked at.
_UNSEEN = Blueprint((), 0, False, None, "float32")


class Workshop:
    """The place where changes are tried on one training; nothing of it is ever allocated.

    Args:
        origin: what the estimate was made of.
        estimate: the training as it is.
    """

    def __init__(self, origin: Origin, estimate: Estimate) -> None:
        subject = origin.model_or_build
        self._origin = origin
        self._subject = subject
        self._given = origin.given
        self._estimate = estimate
        self.notes: list[str] = []
        self.seconds = origin.seconds
        self._build: Callable[[], keras.Model] = (
            (lambda: remade(subject)) if isinstance(subject, keras.Model) else subject
        )

    def blueprint(self) -> Blueprint:
        """What the model is made of.

        Raises:
            Exception: the model cannot be built without memory.
        """
        with tf_context.eager_mode(), untouched_globals():
            if isinstance(self._subject, keras.Model):
                return self._blueprint_of(self._subject)
            try:
                # Inside a scope layers may be called what eager ones may: outermost scopes must not begin with an
                # underscore.
                with tf_func_graph.FuncGraph("look").as_default(), tf.name_scope("look"):
                    return self._looked_at(Creations())
            except Exception:
                # What needs eager values on the way can be built eagerly, its large variables without memory.
                return self._looked_at(Creations(real_up_to=SMALL))

    def _blueprint_of(self, model: keras.Model) -> Blueprint:
        found = blueprint_of(model, self._optimizer_of(model))
        # What the caller said of the batch stays.
        told = self._given.inputs is not None or self._given.targets is not None
        return replace(found, inputs=()) if told else found

    def _looked_at(self, creations: Creations) -> Blueprint:
        try:
            with untouched_objects(used_by(self._build)), creations.recorded():
                return self._blueprint_of(self._build())
        finally:
            creations.discard()

    def proposals(self) -> Iterator[Proposal]:
        """What can be changed about the training."""
        try:
            blueprint = self.blueprint()
        except TimeIsUp:
            self.notes.append("The time was up before the model was looked at, so nothing is said about its layers.")
            blueprint = _UNSEEN
        except Exception as error:
            self.notes.append(
                f"Only few changes were tried, for the model cannot be looked at without memory ({reason_of(error)})."
            )
            blueprint = _UNSEEN
        if not self._origin.saving.callbacks:
            self.notes.append(
                "Without callbacks= nothing is known of the host's memory that checkpoints and histograms take."
            )
        return proposals(blueprint, self._estimate, self._given.validation_batch_size, self._origin.saving.callbacks)

    def tried(self, change: Change) -> Estimate:
        """The estimate of the training with `change`.

        Raises:
            Exception: as for `begun`.
        """
        return self.begun(change)()

    def begun(self, change: Change) -> Callable[[], Estimate]:
        """Begins the estimate of the training with `change`.

        Returns:
            What waits for XLA, where that is asked, and gives the estimate.

        Raises:
            Exception: the change cannot be made to this model, or what it makes cannot be estimated.
        """
        if change.batch_size and change == Change(batch_size=change.batch_size):
            # What was traced for other sizes tells what the step is for this one.
            return self._origin.begun_at_batch_size(change.batch_size)
        return self.origin_of(change).begun()

    def origin_of(self, change: Change, **options: Any) -> Origin:
        """What the estimate of the training with `change` is made of.

        Args:
            change: the change.
            **options: fields of `Given`.
        """
        subject, inputs = self._subject, self._given.inputs
        batch_size = change.batch_size or self._estimate.subject.batch_size
        if change.is_to_the_model:
            if inputs is None and isinstance(subject, keras.Model) and change.keeps_inputs:
                # A model made again may not be built yet, and then does not say what it takes.
                inputs = input_specs(subject, batch_size, None)
                if not self._origin.fixed_batch_sizes:
                    # Evaluation may have batches of another size.
                    inputs = keras.tree.map_structure(
                        lambda one: tf.TensorSpec([None, *one.shape[1:]], one.dtype), inputs
                    )
            subject = change.applied_to(self._build)
        mode = change.mode or self._estimate.subject.mode
        return self._origin.varied(
            subject,
            callbacks=None if change.callbacks is None else change.callbacks(self._origin.saving.callbacks),
            batch_size=batch_size,
            optimizer=change.optimizer() if change.optimizer else self._given.optimizer,
            inputs=inputs,
            jit_compile=mode == XLA,
            run_eagerly=mode == EAGER,
            validation_batch_size=change.validation_batch_size or self._given.validation_batch_size,
            **options,
        )

    def _optimizer_of(self, model: keras.Model) -> Any:
        optimizer = self._given.optimizer if self._given.optimizer is not None else getattr(model, "optimizer", None)
        if optimizer is None:
            return None
        optimizer = keras.optimizers.get(optimizer)
        return copied_optimizer(getattr(optimizer, "inner_optimizer", optimizer))
