"""A Keras model to an Estimate, with nothing of it allocated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import context as tf_context

from tensorboard_plugin_memest.estimation.attribution import Attribution
from tensorboard_plugin_memest.estimation.batches import derived_step
from tensorboard_plugin_memest.estimation.constants import apart_from_the_device
from tensorboard_plugin_memest.estimation.device import CPU, GPU, Device, training_device
from tensorboard_plugin_memest.estimation.garbage import without_full_collections
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.graph import TracedStep, optimized_graph
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.phases import Run, phases_of
from tensorboard_plugin_memest.estimation.places import keep_places
from tensorboard_plugin_memest.estimation.plain_python import plain_python
from tensorboard_plugin_memest.estimation.program import program_of
from tensorboard_plugin_memest.estimation.subject import positive_batch_size, require_subject, require_tensorflow
from tensorboard_plugin_memest.estimation.tf_functions import untouched_functions
from tensorboard_plugin_memest.estimation.training import Training, training_of_function, training_of_model
from tensorboard_plugin_memest.estimation.workspace.catalogue import workspace_notes
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate, Subject


@plain_python
def estimate(
    model_or_build: keras.Model | Callable[[], keras.Model],
    *,
    batch_size: int | None,
    optimizer: Any = None,
    loss: Any = None,
    jit_compile: bool | None = None,
    run_eagerly: bool = False,
    inputs: Any = None,
    targets: Any = None,
    device: str | None = None,
) -> Estimate:
    """Predicts the memory of training a Keras model, without running or allocating anything of it.

    The training step is traced, optimized as TensorFlow would, and played op by op through a replay of TensorFlow's
    allocator. This release knows graph mode (`jit_compile=False`).

    Args:
        model_or_build: a built or compiled `keras.Model`, or a function without arguments that returns one. Given a
            function, nothing of the model is ever allocated. A model is left as it was.
        batch_size: examples a step; None for the model's own fixed batch size, else 32, the default of `fit`.
        optimizer: as for `model.compile`; wins over what the model was compiled with.
        loss: as for `model.compile`; wins over what the model was compiled with.
        jit_compile: False for graph mode. None takes what the model was compiled with.
        run_eagerly: must be False in this release.
        inputs: `tf.TensorSpec`s of one batch, in the structure that the model takes, where the model does not say; a
            batch dimension of None is filled in.
        targets: `tf.TensorSpec`s of the targets, where they do not follow from the loss and the outputs.
        device: `"CPU"` or `"GPU"`; None for the device this process would train on.

    Returns:
        An Estimate; all its numbers are bytes.

    Raises:
        TypeError: `model_or_build` is neither a model nor a function that returns one.
        ValueError: the model is not built, has no optimizer or loss, does not say what its inputs are, or an argument
            is wrong; the text says what to pass instead.
    """
    require_tensorflow()
    require_subject(model_or_build, "The first argument of estimate")
    _check_mode(jit_compile, run_eagerly)
    apart_from_the_device()
    chosen = training_device(device)
    given = Given(batch_size, optimizer, loss, inputs, targets)
    return Origin(model_or_build, given, jit_compile, chosen).estimate()


class Origin:
    """What an estimate was made of: it gives the estimate for any other batch size.

    Args:
        model_or_build: as for `estimate`.
        given: what was passed beside it.
        jit_compile: as for `estimate`.
        device: the device it is for.
    """

    def __init__(
        self,
        model_or_build: keras.Model | Callable[[], keras.Model],
        given: Given,
        jit_compile: bool | None,
        device: Device,
    ) -> None:
        self.model_or_build = model_or_build
        self.given = given
        self.jit_compile = jit_compile
        self.device = device
        self._trained: dict[int, Training] = {}  # by the batch size that was asked for
        self._steps: dict[int, TracedStep] = {}
        self._made: dict[int, Estimate] = {}

    def estimate(self) -> Estimate:
        """The estimate that was asked for."""
        return self._assemble(self._train(self.given.batch_size))

    def at_batch_size(self, batch_size: int) -> Estimate:
        """The estimate for another batch size: the same as a new one for that size.

        The step is derived from those that were traced, and traced anew where that cannot be exact.

        Raises:
            ValueError: the batch size is no positive integer, or not the one that the model fixes.
        """
        first = next(iter(self._trained.values()))
        wanted = positive_batch_size(batch_size)
        if first.fixed_batch_sizes and wanted not in first.fixed_batch_sizes:
            raise UsageError(
                f"at_batch_size({wanted}): the batch size of the model {first.model_name!r} is fixed at "
                f"{min(first.fixed_batch_sizes)}. Leave the batch dimension of its inputs open (None) to compare sizes."
            )
        if wanted not in self._made:
            found = derived_step(self._steps, wanted)
            base = self._trained.get(found[0]) if found else None
            if found is None or base is None:
                made = self._assemble(self._train(wanted))
            else:
                made = self._assemble(base.resized(wanted, found[1]))
            self._made[wanted] = made
        return self._made[wanted]

    def _train(self, batch_size: int | None) -> Training:
        given = replace(self.given, batch_size=batch_size, one_size=bool(self._trained))
        # Whatever graph or function the caller is building, nothing goes into it.
        with tf_context.eager_mode(), untouched_globals(), untouched_functions(), without_full_collections():
            if isinstance(self.model_or_build, keras.Model):
                training = training_of_model(self.model_or_build, given)
            else:
                training = training_of_function(self.model_or_build, given)
            training.discard()
        for size, step in training.steps.items():
            self._trained.setdefault(size, training)
            self._steps.setdefault(size, step)
        return training

    def _assemble(self, training: Training) -> Estimate:
        notes = _mode_notes(training, self.jit_compile, self.device)
        with tf_context.eager_mode(), untouched_globals(), without_full_collections():
            return replace(_assemble(training, self.device, notes), origin=self)


def _check_mode(jit_compile: bool | None, run_eagerly: bool) -> None:
    if jit_compile not in (None, False):
        raise UsageError(
            f"jit_compile={jit_compile!r}: this release of memest estimates graph mode only. Pass jit_compile=False "
            "for the graph-mode estimate; XLA usually needs less for the optimizer's update."
        )
    if run_eagerly is not False:
        raise UsageError(f"run_eagerly={run_eagerly!r}: this release of memest estimates graph mode only; pass False.")


def _mode_notes(training: Training, jit_compile: bool | None, device: Device) -> list[str]:
    if jit_compile is False:
        return []
    if training.run_eagerly:
        return ["The model is compiled with run_eagerly=True, but this estimate is for graph mode; eager steps differ."]
    if training.jit_compile:
        return [
            "The model is compiled with XLA (jit_compile=True, Keras' default on a GPU), but this estimate is for "
            "graph mode, jit_compile=False. XLA fuses the optimizer's update, so it usually needs less."
        ]
    if device.kind == GPU:
        return [
            "On a GPU Keras compiles with XLA unless told otherwise; this estimate is for graph mode, "
            "jit_compile=False. XLA fuses the optimizer's update, so it usually needs less."
        ]
    return []


def _assemble(training: Training, device: Device, mode_notes: list[str]) -> Estimate:
    trace = training.trace
    graph = optimized_graph(training.step, trace.handles, device.kind, training.batch_size)
    if device.kind == CPU and device.onednn:
        keep_places(graph)
    attribution = Attribution(graph, trace.owners)
    program, program_notes = program_of(attribution, device)
    born = {birth.variable for birth in [*(training.built or []), *training.slots]}
    run = Run(
        built=training.built,
        slots=training.slots,
        others=[variable for variable in trace.variables.all if variable not in born],
        program=program,
        parts=attribution.parts,
    )
    phases, resident = phases_of(run, device)
    unknown = [
        f"The size of {name!r} ({trace.owners.find(name).layer}) is not known before the run; it was not counted."
        for name in graph.unknown
    ]
    assumed = [
        f"The first dimension of some tensors of {layer} is only known in the run; it was taken for the batch, "
        f"{training.batch_size}."
        for layer in dict.fromkeys(trace.owners.find(name).layer for name in graph.assumed)
    ]
    return Estimate(
        subject=Subject(
            model_name=training.model_name,
            model_class=training.model_class,
            parameters=training.parameters,
            trainable_parameters=training.trainable_parameters,
            optimizer=", ".join(training.optimizers) or None,
            batch_size=training.batch_size,
            mode="graph",
            device=device.kind,
            pool=device.pool,
            versions=_versions(),
        ),
        resident_bytes=resident,
        phases=phases,
        layer_infos=training.layers,
        assumptions=(
            *training.assumptions,
            *mode_notes,
            *trace.assumptions,
            *program_notes,
            *unknown,
            *assumed,
            *workspace_notes(device),
        ),
        limit_bytes=device.limit_bytes,
    )


def _versions() -> dict[str, str]:
    try:
        own = metadata.version("tensorboard-plugin-memest")
    except metadata.PackageNotFoundError:
        own = "source"
    return {"memest": own, "tensorflow": tf.__version__, "keras": keras.__version__}
