"""A Keras model to an Estimate, with nothing of it allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from importlib import metadata
from time import monotonic
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import context as tf_context

from tensorboard_plugin_memest.estimation.accumulated import checked_predict_examples
from tensorboard_plugin_memest.estimation.batches import derived_step
from tensorboard_plugin_memest.estimation.called import TracedStep
from tensorboard_plugin_memest.estimation.constants import apart_from_the_device
from tensorboard_plugin_memest.estimation.device import Device, training_device
from tensorboard_plugin_memest.estimation.eager_mode import phases_of_eager
from tensorboard_plugin_memest.estimation.garbage import without_full_collections
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.graph import OptimizedStep
from tensorboard_plugin_memest.estimation.graph_mode import begin_optimizing, phases_of_graph
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.mode import EAGER, GRAPH, XLA, check_mode
from tensorboard_plugin_memest.estimation.plain_python import plain_python
from tensorboard_plugin_memest.estimation.replicas import (
    MadeUnderStrategyError,
    Replicas,
    on_one_device,
    outside_strategies,
    replicas_of,
)
from tensorboard_plugin_memest.estimation.saved import CHECKPOINT, checkpoint_phase
from tensorboard_plugin_memest.estimation.saving import NO_SAVING, Saving, checked_saving, host_costs
from tensorboard_plugin_memest.estimation.subject import positive_batch_size, require_subject, require_tensorflow
from tensorboard_plugin_memest.estimation.tf_functions import untouched_functions
from tensorboard_plugin_memest.estimation.training import Training, training_of_function, training_of_model
from tensorboard_plugin_memest.estimation.xla.compilation import checked_timeout
from tensorboard_plugin_memest.estimation.xla.estimate import begin_compiling, phases_with_xla
from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate, Subject
from tensorboard_plugin_memest.memory.what_if import WhatIf


@plain_python
def estimate(
    model_or_build: keras.Model | Callable[[], keras.Model],
    *,
    batch_size: int | None,
    optimizer: Any = None,
    loss: Any = None,
    jit_compile: bool | str | None = None,
    run_eagerly: bool = False,
    inputs: Any = None,
    targets: Any = None,
    device: str | None = None,
    compile_timeout: float | None = None,
    validation_batch_size: int | None = None,
    predict_batch_size: int | None = None,
    predict_examples: int | None = None,
    callbacks: Any = None,
    saves: Any = None,
) -> Estimate:
    """Predicts the memory of training a Keras model, without running or allocating anything of it.

    The training step is traced and, in graph mode, optimized as TensorFlow would; or XLA is asked what it would make of
    it. The result is played through a replay of TensorFlow's allocator.

    Args:
        model_or_build: a built or compiled `keras.Model`, or a function without arguments that returns one. Given a
            function, nothing of the model is ever allocated. A model is left as it was.
        batch_size: examples a step; None for the model's own fixed batch size, else 32, the default of `fit`. Of a
            model that is made under a `tf.distribute` strategy they are shared out between the replicas, as in `fit`,
            and the estimate is of one replica.
        optimizer: as for `model.compile`; wins over what the model was compiled with.
        loss: as for `model.compile`; wins over what the model was compiled with.
        jit_compile: True for XLA, False for graph mode, `"auto"` for what Keras chooses on the device. None takes what
            the model was compiled with, or `"auto"` if it was not.
        run_eagerly: True for eager mode, as in `model.compile`. False takes what the model was compiled with.
        inputs: `tf.TensorSpec`s of one batch, in the structure that the model takes, where the model does not say; a
            batch dimension of None is filled in.
        targets: `tf.TensorSpec`s of the targets, where they do not follow from the loss and the outputs; `()` for none.
            `inputs` may then be a tuple of the whole batch that the data yields, sample weights included.
        device: `"CPU"`, `"GPU"`, or the name of a GPU or a cloud instance type, such as `"RTX 3080"`, whose memory is
            then the limit; None for the device this process would train on.
        compile_timeout: seconds that XLA may take to compile the step, in a process of its own; what it answered before
            is kept in the user's cache directory (`MEMEST_CACHE_DIR` chooses another). None for 300; 0 for an
            approximation without asking it.
        validation_batch_size: examples a step of `evaluate`, and of validation in `fit`, as in the argument of `fit`:
            adds the phase `"evaluate"`. None leaves it out.
        predict_batch_size: examples a step of `predict`: adds the phase `"predict"`. None leaves it out. A model that
            is not compiled can be estimated for prediction alone.
        predict_examples: examples that `predict` gets in all: it keeps the outputs of all batches on the device and
            joins them there, and copies the result to the host (`host_peak_bytes`). None for one batch.
        callbacks: the Keras callbacks of `fit`. `ModelCheckpoint`, `BackupAndRestore` and
            `TensorBoard(histogram_freq=)` add the phase `"checkpoint"`, with what they take of the host's memory
            (`host_peak_bytes`); others change nothing.
        saves: what else the run saves, for the same phase: file names as `model.save` and `model.save_weights` take
            them (`"a.keras"`, `"a.weights.h5"`, `"a.h5"`), a directory as `model.export` takes it, a
            `tf.train.Checkpoint` or `tf.train.CheckpointManager`; one or a list of them.

    Returns:
        An Estimate; all its numbers are bytes.

    Raises:
        TypeError: `model_or_build` is neither a model nor a function that returns one.
        ValueError: the model is not built, has no optimizer or loss, does not say what its inputs are, or an argument
            is wrong; the text says what to pass instead.
    """
    require_tensorflow()
    require_subject(model_or_build, "The first argument of estimate")
    check_mode(jit_compile, run_eagerly)
    for called, size in (
        ("validation_batch_size", validation_batch_size),
        ("predict_batch_size", predict_batch_size),
    ):
        if size is not None:
            positive_batch_size(size, called)
    timeout = checked_timeout(compile_timeout)
    saving = checked_saving(callbacks, saves)
    apart_from_the_device()
    chosen = training_device(device)
    given = Given(
        batch_size,
        optimizer,
        loss,
        inputs,
        targets,
        jit_compile=jit_compile,
        run_eagerly=run_eagerly,
        device=chosen.kind,
        validation_batch_size=validation_batch_size,
        predict_batch_size=predict_batch_size,
        predict_examples=checked_predict_examples(predict_examples, predict_batch_size),
        exports=saving.exports,
        stores=saving.stores,
    )
    return Origin(model_or_build, given, chosen, timeout, saving).estimate()


class Origin:
    """What an estimate was made of: it gives the estimate for any other batch size.

    Args:
        model_or_build: as for `estimate`.
        given: what was passed beside it.
        device: the device it is for.
        compile_timeout: seconds that XLA may take to compile one step.
        saving: what the run saves.
    """

    def __init__(
        self,
        model_or_build: keras.Model | Callable[[], keras.Model],
        given: Given,
        device: Device,
        compile_timeout: float,
        saving: Saving = NO_SAVING,
    ) -> None:
        self.model_or_build = model_or_build
        self.given = given
        self.device = device
        self.compile_timeout = compile_timeout
        self.saving = saving
        if isinstance(model_or_build, keras.Model):
            self._take_one_replica_of(model_or_build)
        self.seconds = 0.0  # that `estimate` took
        self._first: Training | None = None
        self._trained: dict[int, Training] = {}  # by the batch size that was asked for
        self._steps: dict[int, TracedStep] = {}
        self._made: dict[int, Estimate] = {}

    def estimate(self) -> Estimate:
        """The estimate that was asked for."""
        began = monotonic()
        made = self.begun()()
        self.seconds = monotonic() - began
        return made

    def begun(self) -> Callable[[], Estimate]:
        """Begins the estimate that was asked for: Grappler, or inside of `compilers` XLA, is at work when this returns.

        Returns:
            What waits for it and gives the estimate.
        """
        return self._begun(self._train(self._share(self.given.batch_size)), self.given.batch_size)

    def at_batch_size(self, batch_size: int) -> Estimate:
        """The estimate for another batch size: the same as a new one for that size.

        The step is derived from those that were traced, and traced anew where that cannot be exact.

        Raises:
            ValueError: the batch size is no positive integer, or not the one that the model fixes.
        """
        return self.begun_at_batch_size(batch_size)()

    def begun_at_batch_size(self, batch_size: int) -> Callable[[], Estimate]:
        """Begins the estimate for another batch size, as `begun` does.

        Raises:
            ValueError: as for `at_batch_size`.
        """
        first = self._first
        assert first is not None
        asked = positive_batch_size(batch_size)
        wanted = self._share(asked)
        assert wanted is not None
        if first.fixed_batch_sizes and wanted not in first.fixed_batch_sizes:
            raise UsageError(
                f"at_batch_size({wanted}): the batch size of the model {first.model_name!r} is fixed at "
                f"{min(first.fixed_batch_sizes)}. Leave the batch dimension of its inputs open (None) to compare sizes."
            )
        if wanted not in self._made:
            found = derived_step(self._steps, wanted)
            base = self._trained.get(found[0]) if found else None
            training = self._train(wanted) if found is None or base is None else base.resized(wanted, found[1])
            finish = self._begun(training, asked)

        def finished() -> Estimate:
            if wanted not in self._made:
                self._made[wanted] = finish()
            return _for_batch(self._made[wanted], asked, self.given.replicas)

        return finished

    def advice(self, estimate: Estimate, limit_bytes: int, seconds: float | None) -> Advice:
        """What to change so that the training fits into `limit_bytes`; every change is estimated."""
        # Advice is made of estimates, so it imports this module.
        from tensorboard_plugin_memest.advise.advice import advice_for
        from tensorboard_plugin_memest.advise.workshop import Workshop

        if self._first is None or not self._first.trains:
            raise UsageError("advice() is about training, and this estimate is of prediction alone.")
        return advice_for(estimate, limit_bytes, Workshop(self, estimate), seconds)

    def what_if(self, estimate: Estimate, seconds: float | None) -> WhatIf:
        """The training under other choices, as many combinations as can be begun in `seconds`."""
        from tensorboard_plugin_memest.advise.what_if import what_if_of

        if self._first is None or not self._first.trains:
            raise UsageError("what_if() is about training, and this estimate is of prediction alone.")
        return what_if_of(estimate, self, seconds)

    @property
    def fixed_batch_sizes(self) -> set[int]:
        """The only batch sizes that the model takes; empty if it takes any."""
        return set() if self._first is None else self._first.fixed_batch_sizes

    def varied(
        self,
        model_or_build: keras.Model | Callable[[], keras.Model],
        *,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        **changes: Any,
    ) -> Origin:
        """The origin of another model, or of this one with other arguments; the rest is as it was asked for.

        Args:
            model_or_build: as for `estimate`.
            callbacks: what `fit` gets; None for the same.
            **changes: fields of `Given`.
        """
        given = replace(self.given, **{"one_size": True, **changes})
        saving = self.saving if callbacks is None else replace(self.saving, callbacks=callbacks)
        return Origin(model_or_build, given, self.device, self.compile_timeout, saving)

    def _share(self, batch_size: int | None) -> int | None:
        """What of a batch one replica gets."""
        return (
            batch_size if batch_size is None or self.given.replicas is None else self.given.replicas.share(batch_size)
        )

    def _take_one_replica_of(self, model: keras.Model) -> None:
        """From here on it is about one replica of `model`, if that was made under a strategy."""
        replicas = replicas_of(getattr(model, "_distribute_strategy", None))
        if replicas is None:
            return
        with outside_strategies():
            self.model_or_build = on_one_device(model)
        # Keras does not choose XLA under a strategy, on no device.
        decided = self.given.jit_compile is True or (self.given.jit_compile is None and model.jit_compile)
        self.given = replace(
            self.given,
            replicas=replicas,
            jit_compile=bool(decided),
            validation_batch_size=_shared(self.given.validation_batch_size, replicas),
            predict_batch_size=_shared(self.given.predict_batch_size, replicas),
        )

    def _train(self, batch_size: int | None) -> Training:
        try:
            return self._trained_for(batch_size)
        except MadeUnderStrategyError as found:
            self._take_one_replica_of(found.model)
            return self._trained_for(self._share(batch_size))

    def _trained_for(self, batch_size: int | None) -> Training:
        given = replace(self.given, batch_size=batch_size, one_size=self.given.one_size or self._first is not None)
        if self._first is not None and not self._first.trains:
            given = replace(given, predict_batch_size=batch_size)
        # Whatever graph or function the caller is building, nothing goes into it.
        with (
            tf_context.eager_mode(),
            outside_strategies(),
            untouched_globals(),
            untouched_functions(),
            without_full_collections(),
        ):
            if isinstance(self.model_or_build, keras.Model):
                training = training_of_model(self.model_or_build, given)
            else:
                training = training_of_function(self.model_or_build, given)
            training.discard()
        self._first = self._first or training
        for size, step in training.steps.items():
            self._trained.setdefault(size, training)
            self._steps.setdefault(size, step)
        return training

    def _begun(self, training: Training, asked: int | None) -> Callable[[], Estimate]:
        """Sets Grappler or XLA to work on a training; returns what waits for them and gives the estimate."""
        optimizing = None
        if training.mode.name == XLA:
            begin_compiling(training, self.device, self.compile_timeout)
        elif training.mode.name == GRAPH:
            optimizing = begin_optimizing(training, self.device)
        return lambda: self._assemble(training, asked, optimizing)

    def _assemble(
        self, training: Training, asked: int | None, optimizing: Sequence[Future[OptimizedStep]] | None
    ) -> Estimate:
        with tf_context.eager_mode(), untouched_globals(), without_full_collections():
            made = assemble(training, self.device, self.compile_timeout, self.saving, optimizing)
            made = replace(made, origin=self)
        return _for_batch(made, asked, self.given.replicas)


def _shared(batch_size: int | None, replicas: Replicas) -> int | None:
    return None if batch_size is None else replicas.share(positive_batch_size(batch_size))


def _for_batch(estimate: Estimate, asked: int | None, replicas: Replicas | None) -> Estimate:
    """`estimate`, of one replica, as that of a batch of which all replicas get a share.

    Args:
        asked: the size of the whole batch; None for what makes the replica's share.
    """
    if replicas is None:
        return estimate
    before = estimate.subject
    share = before.batch_size if before.strategy is None else replicas.share(before.batch_size)
    size = share * replicas.count if asked is None else asked
    own = [
        note
        for note in estimate.assumptions
        if before.strategy is None or note not in replicas.notes(before.batch_size, before.device)
    ]
    return replace(
        estimate,
        subject=replace(before, batch_size=size, strategy=replicas.strategy, replicas=replicas.count),
        assumptions=(*replicas.notes(size, before.device), *own),
    )


def assemble(
    training: Training,
    device: Device,
    compile_timeout: float,
    saving: Saving = NO_SAVING,
    optimizing: Sequence[Future[OptimizedStep]] | None = None,
) -> Estimate:
    """The estimate of a training that was traced.

    Args:
        training: the training.
        device: what it runs on.
        compile_timeout: seconds that XLA may take to compile its step.
        saving: what the run saves.
        optimizing: its steps, if Grappler has begun with them.
    """
    mode = training.mode
    if mode.name == XLA:
        phases, resident, notes = phases_with_xla(training, device, compile_timeout)
    elif mode.name == EAGER:
        phases, resident, notes = phases_of_eager(training, device)
    else:
        phases, resident, notes = phases_of_graph(training, device, begun=optimizing)
    if training.accumulated is not None:
        phases["predict"] = replace(phases["predict"], host_peak_bytes=training.accumulated.host_bytes)
        notes.append(training.accumulated.note)
    costs = host_costs(saving, training.trace.variables.all, device.kind, training.served, training.computed)
    reading = phases.pop(CHECKPOINT)
    if costs:
        phases[CHECKPOINT] = checkpoint_phase(costs, reading)
        notes += [cost.what for cost in costs]
    return Estimate(
        subject=Subject(
            model_name=training.model_name,
            model_class=training.model_class,
            parameters=training.parameters,
            trainable_parameters=training.trainable_parameters,
            optimizer=", ".join(training.optimizers) or None,
            batch_size=training.batch_size,
            mode=mode.name,
            device=device.kind,
            pool=device.pool,
            versions=_versions(),
        ),
        resident_bytes=resident,
        phases=phases,
        layer_infos=training.layers,
        assumptions=tuple(dict.fromkeys([*training.assumptions, *mode.reasons, *notes])),
        limit_bytes=device.limit_bytes,
    )


def _versions() -> dict[str, str]:
    try:
        own = metadata.version("tensorboard-plugin-memest")
    except metadata.PackageNotFoundError:
        own = "source"
    return {"memest": own, "tensorflow": tf.__version__, "keras": keras.__version__}
