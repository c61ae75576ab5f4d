"""A Keras model to an Estimate, with nothing of it allocated."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import keras
import tensorflow as tf
from keras.src import backend as keras_backend
from tensorflow.python.framework import func_graph as tf_func_graph

from tensorboard_plugin_memest.estimation.attribution import Attribution
from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.device import GPU, Device, training_device
from tensorboard_plugin_memest.estimation.graph import optimized_graph
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals, untouched_objects
from tensorboard_plugin_memest.estimation.layers import LayerPaths
from tensorboard_plugin_memest.estimation.phases import Birth, Run, phases_of
from tensorboard_plugin_memest.estimation.program import program_of
from tensorboard_plugin_memest.estimation.subject import (
    Batch,
    batch_size_of,
    checked_model,
    input_specs,
    require_built,
    target_specs,
)
from tensorboard_plugin_memest.estimation.trace import Trace, optimizers_of, stand_ins, trace_step
from tensorboard_plugin_memest.estimation.variables import Variables
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo, Subject

_SCRATCH_NOTE = (
    "Kernel workspace (scratch of cuDNN, oneDNN or Eigen convolutions and the like) is not counted; it comes on top, "
    "most on a CPU without TF_ENABLE_ONEDNN_OPTS=1."
)


@dataclass(frozen=True)
class _Traced:
    """A step and how its variables came to be."""

    trace: Trace
    batch_size: int
    layers: tuple[LayerInfo, ...]
    parameters: int
    trainable_parameters: int
    built: list[Birth] | None
    slots: list[Birth]
    assumptions: list[str]


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
    _check_mode(jit_compile, run_eagerly)
    chosen = training_device(device)
    given = _Given(batch_size, optimizer, loss, inputs, targets)
    with untouched_globals():
        if isinstance(model_or_build, keras.Model):
            model = model_or_build
            traced = _trace_existing(model, given)
        elif callable(model_or_build):
            model, traced = _trace_built(model_or_build, given)
        else:
            model = checked_model(model_or_build, "The first argument")
        mode_notes = _mode_notes(model, jit_compile, chosen)
        return _assemble(model, traced, chosen, mode_notes)


@dataclass(frozen=True)
class _Given:
    """What the caller passed."""

    batch_size: int | None
    optimizer: Any
    loss: Any
    inputs: Any
    targets: Any


def _check_mode(jit_compile: bool | None, run_eagerly: bool) -> None:
    if jit_compile not in (None, False):
        raise UsageError(
            f"jit_compile={jit_compile!r}: this release of memest estimates graph mode only. Pass jit_compile=False "
            "for the graph-mode estimate; XLA usually needs less for the optimizer's update."
        )
    if run_eagerly is not False:
        raise UsageError(f"run_eagerly={run_eagerly!r}: this release of memest estimates graph mode only; pass False.")


def _mode_notes(model: keras.Model, jit_compile: bool | None, device: Device) -> list[str]:
    if jit_compile is False:
        return []
    if getattr(model, "run_eagerly", False):
        return ["The model is compiled with run_eagerly=True, but this estimate is for graph mode; eager steps differ."]
    if getattr(model, "jit_compile", False):
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


def _trace_built(build: Callable[[], keras.Model], given: _Given) -> tuple[keras.Model, _Traced]:
    """Builds and traces a model of which nothing is ever allocated."""
    try:
        # Inside a function's graph not even constants are.
        with tf_func_graph.FuncGraph("build").as_default():
            return _build_and_trace(build, given)
    except UsageError:
        raise
    except Exception:
        # What needs eager values on the way (`.numpy()`, `adapt`, loading weights) can be built eagerly, its variables
        # still without memory; what fails there too, fails with the error that the user would see.
        return _build_and_trace(build, given)


def _build_and_trace(build: Callable[[], keras.Model], given: _Given) -> tuple[keras.Model, _Traced]:
    creations = Creations()
    with creations.recorded():
        model = checked_model(build(), "What the function returns")
        return model, _trace(model, creations, given)


def _trace_existing(model: keras.Model, given: _Given) -> _Traced:
    """Traces a model that exists, beside its eager variables, and leaves it as it was."""
    if given.inputs is None:
        require_built(model)
    creations = Creations()
    with untouched_objects([model, *model._flatten_layers(include_self=False)]), creations.recorded():
        built = _rebuilt(model, given)
        with stand_ins(model):
            return _trace(model, creations, given, exists=True, rebuilt=built)


def _trace(
    model: keras.Model,
    creations: Creations,
    given: _Given,
    *,
    exists: bool = False,
    rebuilt: list[Birth] | None = None,
) -> _Traced:
    """Traces the step of `model`; `rebuilt` says how an existing one's variables came to be, if that is known."""
    notes: list[str] = []
    _compile(model, given, notes)
    batch_size, note = batch_size_of(model, given.batch_size)
    notes += [note] if note else []
    x = input_specs(model, batch_size, given.inputs)
    y, note = target_specs(_output_specs(model, x, batch_size), getattr(model, "loss", None), given.targets, batch_size)
    notes += [note] if note else []
    paths = LayerPaths(model)
    compiled = len(creations.all)
    trace = trace_step(model, Batch(x, y), paths)
    if not paths.layers or not all(layer.built for _, layer in paths.layers):
        paths = LayerPaths(model)
    by_handle = Variables(model, paths, optimizers_of(model))
    births = [(birth, by_handle.of_handle(birth.handle)) for birth in creations.all]
    known = [Birth(variable, birth.run) for birth, variable in births if variable is not None]
    before = {id(birth.handle) for birth in creations.all[:compiled]}
    built = [
        Birth(variable, birth.run) for birth, variable in births if variable is not None and id(birth.handle) in before
    ]
    slots = [birth for birth in known if birth not in built]
    if exists:
        if rebuilt is None:
            notes.append(
                "The build phase was not estimated: the model cannot be made again from its configuration. Pass a "
                "function that builds it."
            )
        built_or_none = None if rebuilt is None else [*rebuilt, *built]
    else:
        built_or_none = built
    if getattr(model, "steps_per_execution", 1) not in (None, 1):
        notes.append(f"steps_per_execution={model.steps_per_execution} was estimated as one step at a time.")
    return _Traced(
        trace=trace,
        batch_size=batch_size,
        layers=paths.infos(batch_size),
        parameters=_count(model.weights),
        trainable_parameters=_count(model.trainable_weights),
        built=built_or_none,
        slots=slots,
        assumptions=notes,
    )


def _rebuilt(model: keras.Model, given: _Given) -> list[Birth] | None:
    """How the variables of an existing model would be created, from its configuration; None where that fails."""
    creations = Creations()
    # Classes that the user never registered for saving are known all the same: the model is made of them.
    own = {type(layer).__name__: type(layer) for layer in model._flatten_layers()}
    with (
        contextlib.suppress(Exception),
        keras.saving.custom_object_scope(own),
        tf_func_graph.FuncGraph("rebuild").as_default(),
        creations.recorded(),
    ):
        copy = type(model).from_config(model.get_config())
        if not copy.built:
            x = input_specs(model, batch_size_of(model, given.batch_size)[0], given.inputs)
            keras_backend.compute_output_spec(copy, keras.tree.map_structure(_symbolic, x))
        # Layers made from a configuration keep their names, so the copy's variables are equal to the model's.
        variables = Variables(copy, LayerPaths(copy), [])
        births = [(variables.of_handle(creation.handle), creation.run) for creation in creations.all]
        found = [Birth(variable, run) for variable, run in births if variable is not None]
        wanted = Variables(model, LayerPaths(model), []).all
        if {birth.variable for birth in found} >= {v for v in wanted if v.weight is not None}:
            return [birth for birth in found if birth.variable in wanted]
    return None


def _compile(model: keras.Model, given: _Given, notes: list[str]) -> None:
    if model.compiled and given.optimizer is None and given.loss is None:
        return
    optimizer = given.optimizer if given.optimizer is not None else getattr(model, "optimizer", None)
    if optimizer is None:
        raise UsageError(
            f"The model {model.name!r} is not compiled, so it has no optimizer. Call model.compile(optimizer=..., "
            "loss=...) or pass optimizer= and loss=, for example optimizer='adam', loss='mse'."
        )
    loss = given.loss if given.loss is not None else getattr(model, "loss", None)
    if loss is None:
        loss = "mse"
        notes.append("No loss was given: mean squared error was assumed. Pass loss=.")
    if isinstance(optimizer, keras.optimizers.Optimizer) and given.optimizer is optimizer:
        # The caller's own object stays unbuilt.
        optimizer = type(optimizer).from_config(optimizer.get_config())
    metrics = getattr(model, "_compile_metrics", None)
    model.compile(optimizer=optimizer, loss=loss, jit_compile=False)
    if metrics is not None:
        vars(model)["_compile_metrics"] = metrics


def _output_specs(model: keras.Model, x: Any, batch_size: int) -> Any:
    outputs = getattr(model, "_outputs_struct", None)
    if outputs is None and isinstance(model, keras.Sequential) and model.built:
        outputs = model.outputs[0]
    if outputs is None:
        outputs = keras_backend.compute_output_spec(model, keras.tree.map_structure(_symbolic, x), training=False)
    return keras.tree.map_structure(
        lambda output: tf.TensorSpec([batch_size if n is None else n for n in output.shape], output.dtype), outputs
    )


def _symbolic(spec: tf.TensorSpec) -> keras.KerasTensor:
    return keras.KerasTensor(spec.shape, keras.backend.standardize_dtype(spec.dtype))


def _assemble(model: keras.Model, traced: _Traced, device: Device, mode_notes: list[str]) -> Estimate:
    graph = optimized_graph(traced.trace.graph, traced.trace.handles, device.kind)
    attribution = Attribution(graph, traced.trace.owners)
    program, program_notes = program_of(graph, attribution)
    born = {birth.variable for birth in [*(traced.built or []), *traced.slots]}
    run = Run(
        built=traced.built,
        slots=traced.slots,
        others=[variable for variable in traced.trace.variables if variable not in born],
        program=program,
        parts=attribution.parts,
    )
    phases, resident = phases_of(run, device)
    unknown = [
        f"The size of {name!r} ({graph_layer}) is not known before the run; it was not counted."
        for name, graph_layer in ((name, traced.trace.owners.find(name).layer) for name in graph.unknown)
    ]
    notes = [*traced.assumptions, *mode_notes, *traced.trace.assumptions, *program_notes, *unknown, _SCRATCH_NOTE]
    optimizers = [type(one).__name__ for one in optimizers_of(model)]
    return Estimate(
        subject=Subject(
            model_name=model.name,
            model_class=type(model).__name__,
            parameters=traced.parameters,
            trainable_parameters=traced.trainable_parameters,
            optimizer=", ".join(optimizers) or None,
            batch_size=traced.batch_size,
            mode="graph",
            device=device.kind,
            pool=device.pool,
            versions=_versions(),
        ),
        resident_bytes=resident,
        phases=phases,
        layer_infos=traced.layers,
        assumptions=tuple(notes),
        limit_bytes=device.limit_bytes,
    )


def _count(weights: list[Any]) -> int:
    total = 0
    for weight in weights:
        elements = 1
        for size in weight.shape:
            elements *= int(size)
        total += elements
    return total


def _versions() -> dict[str, str]:
    try:
        own = metadata.version("tensorboard-plugin-memest")
    except metadata.PackageNotFoundError:
        own = "source"
    return {"memest": own, "tensorflow": tf.__version__, "keras": keras.__version__}
