"""A model's training, ready to be played: its step traced, and how its variables come to be."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.accumulated import Accumulated, accumulated
from tensorboard_plugin_memest.estimation.batches import derived_step, other_sizes
from tensorboard_plugin_memest.estimation.births import Birth, births_of
from tensorboard_plugin_memest.estimation.called import TracedStep, traced_step
from tensorboard_plugin_memest.estimation.compiled_with import seen_compiling
from tensorboard_plugin_memest.estimation.computed import Computed, computed_to_be_saved
from tensorboard_plugin_memest.estimation.copies import creations_of_copy
from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.discard import discard_graph
from tensorboard_plugin_memest.estimation.eager import BuildingGraph, EagerRun
from tensorboard_plugin_memest.estimation.eager_step import (
    EagerStep,
    Followed,
    FollowedSteps,
    follow,
    followed_training,
)
from tensorboard_plugin_memest.estimation.given import Given, compile_as_given
from tensorboard_plugin_memest.estimation.graph import Value
from tensorboard_plugin_memest.estimation.held import held_values
from tensorboard_plugin_memest.estimation.keras_state import untouched_objects
from tensorboard_plugin_memest.estimation.mode import EAGER, GRAPH, XLA, Mode, mode_of
from tensorboard_plugin_memest.estimation.outputs import output_specs
from tensorboard_plugin_memest.estimation.quantizing import quantized_on_paper
from tensorboard_plugin_memest.estimation.reachable import inner_optimizers, is_library, optimizers_of, reachable
from tensorboard_plugin_memest.estimation.replicas import require_one_replica
from tensorboard_plugin_memest.estimation.served import Served, served
from tensorboard_plugin_memest.estimation.subject import (
    Batch,
    NoModelError,
    batch_size_of,
    checked_model,
    fixed_batch_sizes,
    given_target_specs,
    input_specs,
    require_built,
    target_specs,
)
from tensorboard_plugin_memest.estimation.trace import Owners, Trace, UntraceableError, few, trace_step
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError, reason_of
from tensorboard_plugin_memest.memory.estimate import LayerInfo

# Up to this many bytes a variable may exist where a model cannot be built without the values of some.
SMALL = 2**20

# A step of so many ops is traced within a fraction of a second.
QUICK_OPS = 2000

# What a model does for one batch of a phase.
_METHODS = {"evaluate": "test_step", "predict": "predict_step"}

# What building a variable does to memory where nobody saw it: it is there.
UNSEEN = EagerRun()


@dataclass(frozen=True)
class Pass:
    """One kind of step of a run, traced: of training, evaluation or prediction.

    Attributes:
        phase: `"step"`, `"evaluate"` or `"predict"`.
        batch_size: examples in it.
        step: what was traced.
        handles: name of a placeholder for a variable, to the variable.
        owners: who made which op.
        assumptions: what tracing had to assume, and what is not part of one step.
        accumulated: what a prediction keeps of its batches; None for other phases.
    """

    phase: str
    batch_size: int
    step: TracedStep
    handles: dict[str, Variable]
    owners: Owners
    assumptions: list[str]
    accumulated: Accumulated | None = None


@dataclass(frozen=True)
class Training:
    """The training of one model for one batch size.

    Attributes:
        model_name: the model's name.
        model_class: its class's name.
        optimizers: class names of its optimizers.
        parameters: elements of all its weights.
        trainable_parameters: elements of those that are trained.
        layers: what its layers are.
        batch_size: examples a step.
        trace: one step.
        built: the variables that building and compiling it creates, in order; None when that is not known.
        slots: the variables that the first step creates, in order.
        mode: how its steps run.
        assumptions: what had to be assumed.
        batch_assumptions: those of them that are about the batch size.
        fixed_batch_sizes: the only batch sizes that the model takes; empty if it takes any.
        steps: the step as traced for this batch size and, where that was cheap, for others.
        further: steps of evaluation and prediction, where they were asked for.
        eager_steps: its steps as they run eagerly, where they do.
        trains: whether it is trained; else `trace` is a step of prediction.
        creations: the variables that never came to be.
        before: variables that came to be before what is estimated begins, in order, as far as that is known.
        workers: how many processes train together.
        served: what an export traces; None where the model is not exported.
        computed: what layers compute when they are saved, where they are.
        held: what small variables hold that exist.
        building: what the code that builds the model makes besides variables, as far as it was seen.
    """

    model_name: str
    model_class: str
    optimizers: tuple[str, ...]
    parameters: int
    trainable_parameters: int
    layers: tuple[LayerInfo, ...]
    batch_size: int
    trace: Trace
    built: list[Birth] | None
    slots: list[Birth]
    mode: Mode
    assumptions: list[str]
    batch_assumptions: list[str]
    fixed_batch_sizes: set[int]
    steps: dict[int, TracedStep]
    further: list[Pass]
    eager_steps: list[EagerStep]
    trains: bool
    creations: Creations
    before: Sequence[Birth] = ()
    workers: int = 1
    served: Served | None = None
    computed: Sequence[Computed] = ()
    held: Mapping[Variable, Value] = field(default_factory=dict)
    building: EagerRun = field(default_factory=EagerRun)

    @property
    def passes(self) -> list[Pass]:
        """The steps of the run, each kind once; that of training first."""
        if not self.trains:
            return self.further
        trace = self.trace
        own = Pass("step", self.batch_size, self.step, trace.handles, trace.owners, trace.assumptions)
        return [own, *self.further]

    @property
    def accumulated(self) -> Accumulated | None:
        """What a prediction keeps of its batches; None without one."""
        kept = [one.accumulated for one in self.further] + [one.accumulated for one in self.eager_steps]
        return next((one for one in kept if one is not None), None)

    @property
    def step(self) -> TracedStep:
        """The step for this batch size."""
        return self.steps[self.batch_size]

    @property
    def others(self) -> list[Birth]:
        """The variables that exist before any phase; those that nobody saw come to be are there at once."""
        born = {birth.variable for birth in [*(self.built or []), *self.slots, *self.before]}
        return [*self.before, *(Birth(one, UNSEEN) for one in self.trace.variables.all if one not in born)]

    @property
    def values(self) -> dict[Variable, Value]:
        """What variables hold before the first step, as far as it is known."""
        births = [*(self.built or []), *self.slots, *self.before]
        return {one.variable: one.run.value for one in births if one.run.value is not None} | dict(self.held)

    def resized(self, batch_size: int, step: TracedStep) -> Training:
        """The training for another batch size, for which `step` is the step."""
        return replace(
            self,
            batch_size=batch_size,
            layers=tuple(_resized(info, self.batch_size, batch_size) for info in self.layers),
            # Somebody chose this size.
            assumptions=[note for note in self.assumptions if note not in self.batch_assumptions],
            batch_assumptions=[],
            steps={batch_size: step},
        )

    def discard(self) -> None:
        """Gives the traced graph up, which would stay in memory else; the rest can be used on."""
        discard_graph(self.trace.graph)
        self.creations.discard()


def training_of_model(model: keras.Model, given: Given) -> Training:
    """The training of a model that exists, which is left as it was.

    Raises:
        ValueError: the model is not built, has no optimizer, or does not say what its inputs are.
        UntraceableError: its training step cannot be traced.
    """
    require_one_replica(model)
    if given.inputs is None:
        require_built(model)
    creations = Creations()
    with untouched_objects([model, *given.objects]), creations.recorded():
        return _training(model, creations, given, creations_of_copy(model, given))


def training_of_function(build: Callable[[], keras.Model], given: Given) -> Training:
    """The training of a model that `build` makes, of which nothing is allocated.

    Raises:
        TypeError: `build` returns no model.
        ValueError: the model has no optimizer, or does not say what its inputs are.
        UntraceableError: its training step cannot be traced.
    """
    with untouched_objects([*used_by(build), *given.objects]):
        try:
            # Inside a function's graph not even constants are. In a scope, layers may be called what eager ones may:
            # only outermost scopes must not begin with an underscore.
            around = BuildingGraph("build")
            with around.as_default(), tf.name_scope("build"):
                made = _build_and_trace(build, given, Creations(around=around))
        except (UsageError, NoModelError):
            raise
        except Exception:
            # What needs eager values on the way (`.numpy()`, `adapt`) can be built eagerly, its large variables still
            # without memory; what fails there too, fails with the error that the user would see.
            made = _build_eagerly(build, given)
        return made if isinstance(made, Training) else training_of_model(made, given)


def _build_eagerly(build: Callable[[], keras.Model], given: Given) -> Training | keras.Model:
    creations = Creations(real_up_to=SMALL)
    try:
        return _build_and_trace(build, given, creations)
    except (UsageError, NoModelError, UntraceableError):
        raise
    except Exception as error:
        if not creations.without_value:
            raise
        raise UsageError(
            f"The function that builds the model failed: {reason_of(error)} If it does not fail outside of an "
            "estimate, it needs values of the model's variables, which do not exist here: large ones are made without "
            "memory. Build the model first and pass it instead of the function."
        ) from error


def _build_and_trace(build: Callable[[], keras.Model], given: Given, creations: Creations) -> Training | keras.Model:
    """The training of the model that `build` makes; the model itself if it existed before."""
    with creations.recorded():
        with seen_compiling() as seen, quantized_on_paper():
            model = checked_model(build(), "What the function returns")
        building = creations.done()
        require_one_replica(model)
        created = {id(creation.handle) for creation in creations.all}
        if model.weights and not any(id(weight.handle) in created for weight in model.weights):
            return model
        with untouched_objects([model]):
            return replace(_training(model, creations, given, [], seen.get(id(model))), building=building)


def used_by(build: Callable[[], Any]) -> list[Any]:
    """The layers, optimizers and the like that a function gets from around it, which calling it may change.

    What functions around it get is among that: a change to a model is a function around the one that makes it.
    """
    values: list[Any] = []
    waiting: list[Any] = [build]
    seen: set[int] = set()
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        values.append(getattr(function, "__self__", None))
        try:
            around = inspect.getclosurevars(function)
        except (TypeError, ValueError):
            values.append(function)  # no function of Python's own: an object that can be called
            continue
        found = [*around.nonlocals.values(), *around.globals.values()]
        values += found
        waiting += [value for value in found if inspect.isfunction(value) and not is_library(value.__module__ or "")]
    return [
        thing
        for thing in reachable(values)
        if isinstance(thing, (keras.layers.Layer, keras.optimizers.Optimizer, keras.losses.Loss, keras.metrics.Metric))
    ]


def _training(
    model: keras.Model,
    creations: Creations,
    given: Given,
    copied: list[tuple[Any, EagerRun]] | None,
    compiled_with: Any = None,
) -> Training:
    """Traces the training of `model`, which is changed by it.

    Args:
        model: a model.
        creations: how its variables were created, as far as that was seen.
        given: what the caller passed.
        copied: variables that exist already, and how they would be created; None if that is not known.
        compiled_with: the `jit_compile` that its caller compiled it with; None if that is not known.
    """
    was_compiled = model.compiled
    trains = _trains(model, given)
    notes = compile_as_given(model, given) if trains else []
    mode = mode_of(
        model,
        given.jit_compile,
        given.run_eagerly,
        given.device,
        was_compiled=was_compiled,
        compiled_with=compiled_with,
    )
    compiled = len(creations.all)
    wanted = given.batch_size if trains else given.predict_batch_size
    batch_size, batch_notes = batch_size_of(model, wanted, given.inputs)
    fixed = fixed_batch_sizes(model, given.inputs)
    notes += batch_notes
    x = input_specs(model, batch_size, given.inputs)
    y, assumed = targets_of(model, x, batch_size, given) if trains else (None, [])
    # The first trace opens their scopes once more than any later one, to create their variables.
    building = [
        optimizer.name
        for optimizer in optimizers_of([model])
        if not optimizer.built and not (model.built and optimizer is getattr(model, "optimizer", None))
    ]
    eager_steps: list[EagerStep] = []
    if mode.name == EAGER:
        followed = _followed(model, Batch(x, y), given, creations, compiled, trains=trains)
        trace, births, others, eager_steps = followed.trace, followed.births, followed.others, followed.steps
    else:
        method = "train_step" if trains else "predict_step"
        trace = trace_step(model, Batch(x, y), for_xla=mode.name == XLA, method=method, replicas=_summing(given, mode))
        births, others = births_of(creations, trace, compiled)
        if given.replicas is None:
            # Under a strategy Keras builds the optimizer, whether a step uses it or not.
            idle = _idle_slots(model, trace, creations, compiled)
            trace.variables.forget(idle)
            births = [(number, birth) for number, birth in births if birth.variable not in idle]
    if others:
        notes.append(
            f"Variables that were created with the model and still exist belong to none of its layers "
            f"({few(others)}); they were counted."
        )
    built = None
    if copied is not None:
        existed = [(trace.variables.of_handle(variable.handle), run) for variable, run in copied]
        built = [Birth(variable, run) for variable, run in existed if variable is not None]
        known = {birth.variable for birth in [*built, *(birth for _, birth in births)]}
        # Slots that exist are those of a training that went on for a while already.
        built += [
            Birth(variable, UNSEEN)
            for variable in trace.variables.all
            if variable not in known and not (variable.category is Category.OPTIMIZER_SLOTS and variable.weight)
        ]
        built += [birth for number, birth in births if number < compiled or not trains]
    else:
        notes.append(
            "The build phase was not estimated: the model cannot be made again from its configuration. Pass a function "
            "that builds it."
        )
    slots = [birth for number, birth in births if number >= compiled and trains]
    if not trains:
        notes.append("The model is not compiled and no optimizer was given, so only prediction was estimated.")
    elif model.steps_per_execution != 1:
        count = model.steps_per_execution
        notes.append(
            f"steps_per_execution={count}: with XLA a step was estimated as if it ran alone."
            if mode.name == XLA
            else f"steps_per_execution={count}: a step of this estimate is Keras' loop over {count} batches."
        )
    return Training(
        model_name=model.name,
        model_class=type(model).__name__,
        optimizers=_used_optimizers(model, trace),
        parameters=_elements(model.weights),
        trainable_parameters=_elements(model.trainable_weights),
        layers=trace.layers.infos(batch_size),
        batch_size=batch_size,
        trace=trace,
        built=built,
        slots=slots,
        mode=mode,
        assumptions=[*notes, *assumed],
        batch_assumptions=batch_notes,
        fixed_batch_sizes=fixed,
        steps=_steps(model, given, trace, batch_size, fixed, building, mode) if trains and not eager_steps else {},
        further=[] if eager_steps else _further(model, given, mode, trains=trains),
        eager_steps=eager_steps,
        trains=trains,
        creations=creations,
        workers=given.replicas.workers if given.replicas is not None else 1,
        served=served(model, x, any_size=not fixed) if given.exports else None,
        computed=computed_to_be_saved(trace.layers.layers) if given.stores else (),
        held=held_values(trace, creations),
    )


def _summing(given: Given, mode: Mode) -> int:
    """Over how many replicas a step sums its gradients, as far as its graph shows that."""
    return given.replicas.count if given.replicas is not None and mode.name == GRAPH else 1


def _trains(model: keras.Model, given: Given) -> bool:
    """Whether there is a training to estimate: without optimizer and loss a model can predict all the same."""
    return bool(model.compiled) or given.optimizer is not None or given.predict_batch_size is None


def _further(model: keras.Model, given: Given, mode: Mode, *, trains: bool) -> list[Pass]:
    """The steps of evaluation and prediction that were asked for."""
    found = []
    for phase, batch_size, batch in _further_batches(model, given, trains=trains):
        trace = trace_step(model, batch, for_xla=mode.name == XLA, method=_METHODS[phase])
        notes = [f"A step of {phase} is for a batch of {batch_size}.", *trace.assumptions]
        kept = accumulated(trace.graph.outputs, batch_size, given.predict_examples) if phase == "predict" else None
        step = traced_step(trace.graph, trace.fed)
        discard_graph(trace.graph)
        found.append(Pass(phase, batch_size, step, trace.handles, trace.owners, notes, kept))
    return found


def _further_batches(model: keras.Model, given: Given, *, trains: bool) -> Iterator[tuple[str, int, Batch]]:
    """Of evaluation and prediction, as far as they are asked for: the phase, examples in a step, and its batch."""
    sizes = {"evaluate": given.validation_batch_size if trains else None, "predict": given.predict_batch_size}
    for phase, size in sizes.items():
        if size is not None:
            batch_size, _ = batch_size_of(model, size, given.inputs)
            x = input_specs(model, batch_size, given.inputs)
            y = targets_of(model, x, batch_size, given)[0] if phase == "evaluate" else None
            yield phase, batch_size, Batch(x, y)


def _followed(
    model: keras.Model, batch: Batch, given: Given, creations: Creations, compiled: int, *, trains: bool
) -> FollowedSteps:
    """The steps that are asked for, as they run eagerly.

    Args:
        model: the model.
        batch: what a step of training is fed.
        given: what the caller passed.
        creations: where variables are recorded that are created.
        compiled: how many were, when it was compiled.
        trains: whether it is trained.

    Raises:
        UntraceableError: a step fails.
    """
    trained = None
    further: list[Followed] = []
    try:
        if trains:
            trained = followed_training(model.train_step, [batch.ways(model)[0]], lambda: [model], creations, compiled)
        for phase, size, fed in _further_batches(model, given, trains=trains):
            keep = partial(accumulated, batch_size=size, examples=given.predict_examples)
            step, kept = getattr(model, _METHODS[phase]), keep if phase == "predict" else None
            further.append(follow(phase, step, [fed.ways(model)[0]], lambda: [model], creations, kept))
    except UsageError:
        raise
    except Exception as error:
        raise UntraceableError(
            f"The model {model.name!r} ({type(model).__name__}) cannot be run eagerly on paper: "
            f"{type(error).__name__}: {error}"
        ) from error
    steps = [one.step for one in further]
    if trained is not None:
        return replace(trained, steps=[*trained.steps, *steps])
    trace = further[0].trace
    return FollowedSteps(trace, *births_of(creations, trace, compiled), steps)


def _resized(info: LayerInfo, old: int, new: int) -> LayerInfo:
    shape = info.output_shape
    return replace(info, output_shape=(new, *shape[1:])) if shape and shape[0] == old else info


def _steps(
    model: keras.Model,
    given: Given,
    trace: Trace,
    batch_size: int,
    fixed: set[int],
    building: list[str],
    mode: Mode,
) -> dict[int, TracedStep]:
    """The step for this batch size and, where a trace is quick, for as many others as tell how it depends on that."""
    steps = {batch_size: traced_step(trace.graph)}
    if fixed or given.one_size or len(steps[batch_size].definition.node) > QUICK_OPS:
        return steps
    *others, never_traced = other_sizes(batch_size, 3)
    for size in others:
        try:
            x = input_specs(model, size, given.inputs)
            y, _ = targets_of(model, x, size, given)
            other = trace_step(model, Batch(x, y), building, for_xla=mode.name == XLA, replicas=_summing(given, mode))
        except Exception:
            # A model that works for one batch size only is none of those that can be replayed.
            break
        steps[size] = traced_step(other.graph)
        discard_graph(other.graph)
        if derived_step(steps, never_traced) is not None:
            break
    return steps


def _idle_slots(model: keras.Model, trace: Trace, creations: Creations, compiled: int) -> set[Variable]:
    """The slots that the model's optimizer got for a step that does not use it: no run makes them.

    `compile` gives every model an optimizer, and those that train with others of their own leave it unbuilt.
    """
    optimizer = getattr(model, "optimizer", None)
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        return set()
    handles = [variable.handle for one in (optimizer, *inner_optimizers(optimizer)) for variable in one.variables]
    held = {trace.variables.of_handle(handle) for handle in handles}
    made = {trace.variables.of_handle(creation.handle) for creation in creations.all[compiled:]}
    slots = {variable for variable in held & made if variable is not None}
    return set() if slots & set(trace.handles.values()) else slots


def _used_optimizers(model: keras.Model, trace: Trace) -> tuple[str, ...]:
    """Class names of the optimizers whose variables the step uses: `compile` makes one even where nobody does."""
    used = set(trace.handles.values())
    return tuple(
        type(optimizer).__name__
        for optimizer in optimizers_of([model])
        if any(trace.variables.of_handle(variable.handle) in used for variable in optimizer.variables)
    )


def targets_of(model: keras.Model, x: Any, batch_size: int, given: Given) -> tuple[Any, list[str]]:
    if given.targets is not None:
        return given_target_specs(given.targets, batch_size), []
    loss = getattr(model, "loss", None)
    if loss is None or getattr(model, "_compile_loss", None) is None:
        return None, []
    try:
        outputs = output_specs(model, x, batch_size)
    except Exception as error:
        raise UntraceableError(
            f"The model {model.name!r} ({type(model).__name__}) cannot be called on its inputs to learn what its "
            f"targets look like: {type(error).__name__}: {error}\nIf its inputs are others, pass inputs=; if it is not "
            "called as a whole, pass targets= (targets=() for none)."
        ) from error
    return target_specs(outputs, loss, getattr(model, "output_names", None))


def _elements(weights: list[Any]) -> int:
    return sum(math.prod(weight.shape) for weight in weights)
