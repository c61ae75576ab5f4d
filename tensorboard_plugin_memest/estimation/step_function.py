"""The training of a loop outside Keras: a step function traced, with the variables that its first call creates."""

from __future__ import annotations

import gc
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.eager.polymorphic_function import autograph_util
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function, OptionalXlaContext

from tensorboard_plugin_memest.estimation.around import around, untouched_surroundings
from tensorboard_plugin_memest.estimation.births import Birth, births_of
from tensorboard_plugin_memest.estimation.called import traced_step
from tensorboard_plugin_memest.estimation.copies import creations_of_copy
from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.eager_step import EagerStep, FollowedSteps, followed_training
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.held import held_values
from tensorboard_plugin_memest.estimation.keras_state import untouched_objects
from tensorboard_plugin_memest.estimation.layers import outermost_layers
from tensorboard_plugin_memest.estimation.mode import EAGER, EAGER_EVERYWHERE, GRAPH, XLA, Mode
from tensorboard_plugin_memest.estimation.reachable import optimizers_of
from tensorboard_plugin_memest.estimation.subject import positive_batch_size, require_one_device
from tensorboard_plugin_memest.estimation.trace import Trace, UntraceableError, few, trace_function
from tensorboard_plugin_memest.estimation.training import Training
from tensorboard_plugin_memest.memory.errors import UsageError

# What an argument is traced as; anything else is passed on as it is.
_SPECS = (tf.TensorSpec, tf.data.IteratorSpec, tf.data.DatasetSpec)


def training_of_step(
    step_function: Callable[..., Any],
    specs: Sequence[Any],
    named_specs: Mapping[str, Any],
    batch_size: int | None,
    instead_of: int | None = None,
    jit_compile: bool | None = None,
    *,
    run_eagerly: bool = False,
) -> Training:
    """The training that calling `step_function` again and again is; everything it uses is left as it was.

    Args:
        step_function: a `tf.function` or a Python function.
        specs: of its arguments, as `estimate_function` takes them.
        named_specs: of its keyword arguments.
        batch_size: what an open first dimension is taken for; None if there is none.
        instead_of: a first dimension of this size is taken for the batch, too.
        jit_compile: whether XLA compiles it; None for what it says itself.
        run_eagerly: whether it runs eagerly, op by op.

    Raises:
        ValueError: the arguments do not fit the function, or a size is not known.
        UntraceableError: the function cannot be traced.
    """
    mode = _mode(step_function, jit_compile, run_eagerly=run_eagerly)
    call = _call_of(step_function, specs, named_specs, batch_size, instead_of, mode)
    roots = [step_function, specs, dict(named_specs)]
    things = around(roots)
    _require_one_device(things)
    models = [one for one in outermost_layers(things) if isinstance(one, keras.Model) and one.built]
    creations = Creations()
    with untouched_surroundings(roots), untouched_objects(things), creations.recorded():
        created: Sequence[tuple[int, Birth]]
        eager_steps: list[EagerStep] = []
        if mode.name == EAGER:
            followed = _followed(call, lambda: around(roots), creations)
            trace, created, others, eager_steps = followed.trace, followed.births, followed.others, followed.steps
        else:
            trace = _traced(call, lambda: around(roots), for_xla=mode.name == XLA)
            created, others = births_of(creations, trace)
        notes = list(call.assumptions)
        if others:
            notes.append(
                f"Variables that the first call creates and that still exist are found in nothing that the function "
                f"uses ({few(others)}); they were counted."
            )
        weights = [variable for variable in trace.variables.all if variable.name == variable.weight]
        return Training(
            model_name=call.name,
            model_class="tf.function" if isinstance(step_function, Function) else "function",
            optimizers=_optimizers(trace, around(roots)),
            parameters=sum(math.prod(variable.shape) for variable in weights),
            trainable_parameters=sum(math.prod(variable.shape) for variable in weights if variable.trainable),
            layers=trace.layers.infos(call.batch_size),
            batch_size=call.batch_size,
            trace=trace,
            built=None,
            slots=[birth for _, birth in created],
            mode=mode,
            assumptions=notes,
            batch_assumptions=[],
            fixed_batch_sizes=set(),
            steps={} if eager_steps else {call.batch_size: traced_step(trace.graph, trace.fed)},
            further=[],
            eager_steps=eager_steps,
            trains=True,
            creations=creations,
            before=_births_before(models, trace, call.batch_size),
            held=held_values(trace, creations),
        )


def _mode(step_function: Callable[..., Any], jit_compile: bool | None, *, run_eagerly: bool) -> Mode:
    if run_eagerly:
        return Mode(EAGER)
    if jit_compile is not None:
        return Mode(XLA if jit_compile else GRAPH)
    if tf.config.functions_run_eagerly():
        return EAGER_EVERYWHERE
    name = _name_of(step_function)
    if getattr(step_function, "_jit_compile", False):
        return Mode(XLA, (f"{name} is compiled with XLA (jit_compile=True), which was estimated.",))
    if isinstance(step_function, Function):
        return Mode(GRAPH)
    return Mode(
        GRAPH,
        (
            f"{name} is no tf.function; it was estimated as if it were wrapped in one. Pass run_eagerly=True if the "
            "loop calls it as it is.",
        ),
    )


def _name_of(step_function: Callable[..., Any]) -> str:
    return str(getattr(step_function, "__name__", type(step_function).__name__))


@dataclass(frozen=True)
class _Call:
    """How the step is called.

    Attributes:
        name: the function's name.
        function: takes what `signature` says, in that order.
        signature: specs of the arguments that are tensors or iterators.
        batch_size: examples a step.
        assumptions: what had to be assumed.
    """

    name: str
    function: Callable[..., Any]
    signature: list[Any]
    batch_size: int
    assumptions: list[str]


def _call_of(
    step_function: Callable[..., Any],
    specs: Sequence[Any],
    named_specs: Mapping[str, Any],
    batch_size: int | None,
    instead_of: int | None,
    mode: Mode,
) -> _Call:
    name = _name_of(step_function)
    notes = [
        "How the models and variables are built was not estimated: the step function shows the step only; phases are "
        "first_step and step."
    ]
    if isinstance(step_function, Function):
        if not specs and not named_specs and step_function.input_signature is not None:
            specs = step_function.input_signature
        python_function, convert = step_function.python_function, step_function._autograph
    else:
        python_function, convert = step_function, True
    _require_fit(name, python_function, specs, named_specs)
    wanted = None if batch_size is None else positive_batch_size(batch_size)
    flat = [_spec_of(value, wanted, instead_of) for value in tf.nest.flatten((tuple(specs), dict(named_specs)))]
    size, assumed = _batch_size(flat, wanted)
    traced = [number for number, value in enumerate(flat) if isinstance(value, _SPECS)]
    # In eager mode Python's own loops and branches are taken.
    convert = convert and mode.name != EAGER
    converted = autograph_util.py_func_from_autograph(python_function) if convert else python_function
    status = ag_ctx.Status.DISABLED if mode.name == EAGER else ag_ctx.Status.UNSPECIFIED

    def call(*arguments: Any) -> Any:
        values = list(flat)
        for number, argument in zip(traced, arguments, strict=True):
            values[number] = argument
        positional, named = tf.nest.pack_sequence_as((tuple(specs), dict(named_specs)), values)
        # Unlike Keras, a tf.function lets AutoGraph rewrite what it calls.
        with ag_ctx.ControlStatusCtx(status):
            return converted(*positional, **named)

    return _Call(name, call, [flat[number] for number in traced], size, [*notes, *assumed])


def _require_fit(name: str, function: Callable[..., Any], specs: Sequence[Any], named_specs: Mapping[str, Any]) -> None:
    try:
        inspect.signature(function).bind(*specs, **named_specs)
    except TypeError as error:
        raise UsageError(
            f"The step function {name} cannot be called with the {len(specs)} arguments {tuple(specs)!r}"
            f"{f' and {dict(named_specs)!r}' if named_specs else ''}: {error}. Pass the specs of its arguments in "
            "their order, such as estimate_function(step, tf.TensorSpec((32, 28, 28)), tf.TensorSpec((32,), 'int64'))."
        ) from None
    except ValueError:
        pass  # it does not say what its arguments are


def _spec_of(value: Any, batch_size: int | None, instead_of: int | None) -> Any:
    """What an argument is traced as, with the batch filled in; the argument itself if it is no tensor or iterator."""
    if isinstance(value, tf.data.Iterator):
        value = value._type_spec
    elif isinstance(value, tf.data.Dataset):
        value = tf.data.DatasetSpec.from_value(value)
    if isinstance(value, tf.data.IteratorSpec):
        elements = tf.nest.map_structure(lambda one: _spec_of(one, batch_size, instead_of), value._element_spec)
        return tf.data.IteratorSpec(elements)
    if isinstance(value, (tf.Variable, keras.Variable)):
        return value
    if isinstance(value, (tf.RaggedTensorSpec, tf.SparseTensorSpec, tf.RaggedTensor, tf.SparseTensor)):
        raise UsageError(
            f"The step function's argument {value!r} is sparse or ragged, so its size is not known before the run. "
            "Estimate with a dense one of the largest size you train with: tf.TensorSpec(...)."
        )
    if isinstance(value, (np.ndarray, np.generic, keras.KerasTensor)) or tf.is_tensor(value):
        value = tf.TensorSpec(value.shape, value.dtype)
    if not isinstance(value, tf.TensorSpec):
        return value
    shape = list(value.shape) if value.shape.rank is not None else [None, None]
    if shape and shape[0] in (None, instead_of) and batch_size is not None:
        shape[0] = batch_size
    if None in shape:
        raise UsageError(
            f"The step function's argument {value!r} has a size that is not known before the run. Pass a tf.TensorSpec "
            "with the largest size you train with"
            f"{', or batch_size= for the first dimension' if batch_size is None else ''}."
        )
    return tf.TensorSpec(shape, value.dtype, name=value.name)


def _batch_size(flat: Sequence[Any], wanted: int | None) -> tuple[int, list[str]]:
    """Examples a step, and what had to be assumed about that."""
    elements = [one for value in flat for one in tf.nest.flatten(getattr(value, "_element_spec", value))]
    firsts = [spec.shape[0] for spec in elements if isinstance(spec, tf.TensorSpec) and spec.shape.rank]
    if wanted is not None:
        if firsts and wanted not in firsts:
            raise UsageError(
                f"batch_size={wanted}, but the first dimensions of the step function's arguments are "
                f"{', '.join(map(str, dict.fromkeys(firsts)))}. Leave batch_size= away, or the first dimension open "
                "(None)."
            )
        return wanted, []
    if not firsts:
        return 1, [
            "No argument of the step function has a first dimension to take for the batch: the batch size was taken "
            "for 1. Pass batch_size=."
        ]
    size = int(firsts[0])
    if len(set(firsts)) == 1:
        return size, []
    return size, [f"The batch size was taken from the first argument of the step function that has dimensions: {size}."]


def _require_one_device(things: Sequence[Any]) -> None:
    for thing in things:
        if isinstance(thing, keras.Model):
            require_one_device(thing)
        if isinstance(thing, tf.distribute.Strategy) and thing.num_replicas_in_sync > 1:
            raise UsageError(
                f"The step function uses {thing!r}; this release of memest estimates one device. Pass the function "
                "that runs on one replica, with specs for one replica's share of the batch."
            )


def _traced(call: _Call, find: Callable[[], list[Any]], *, for_xla: bool) -> Trace:
    def step(*arguments: Any) -> Any:
        # Loops keep what they store in another form where XLA compiles them.
        with OptionalXlaContext(for_xla):
            return call.function(*arguments)

    try:
        return trace_function(call.name, step, call.signature, find)
    except UsageError:
        raise
    except Exception as error:
        raise UntraceableError(
            f"The step function {call.name} cannot be traced for {call.signature}: {type(error).__name__}: {error}\n"
            "It is traced as tf.function does it: what needs the values of tensors (.numpy(), float(), printing or "
            "logging them) has to stay outside of it. If it is called with other arguments, pass their specs."
        ) from error


def _followed(call: _Call, find: Callable[[], list[Any]], creations: Creations) -> FollowedSteps:
    """The step as it runs eagerly."""
    try:
        return followed_training(call.function, call.signature, find, creations)
    except UsageError:
        raise
    except Exception as error:
        raise UntraceableError(
            f"The step function {call.name} cannot be run eagerly on paper for {call.signature}: "
            f"{type(error).__name__}: {error}\nIf it is called with other arguments, pass their specs."
        ) from error


def _births_before(models: Sequence[keras.Model], trace: Trace, batch_size: int) -> list[Birth]:
    """How the variables of `models` came to be, where copies of these show it.

    That decides where in the pool they lie, and which gaps are between them.
    """
    copied = [pair for model in models for pair in creations_of_copy(model, Given(batch_size)) or ()]
    found = {trace.variables.of_handle(variable.handle): run for variable, run in copied}
    return [Birth(variable, run) for variable, run in found.items() if variable is not None]


def _optimizers(trace: Trace, things: Sequence[Any]) -> tuple[str, ...]:
    """Class names of the Keras optimizers whose variables the step uses."""
    gc.collect()
    used = set(trace.handles.values())
    return tuple(
        type(optimizer).__name__
        for optimizer in optimizers_of(things)
        if any(trace.variables.of_handle(variable.handle) in used for variable in optimizer.variables)
    )
