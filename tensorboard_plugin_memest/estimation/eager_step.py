"""A model's step as it runs eagerly: what each op makes, and how long Python and the gradient tape hold it.

The step's Python code runs once in a scratch graph, where tensors are symbolic but are held by the same references as
eager ones would be: a tensor goes when nobody refers to it any more, neither a Python variable nor the tape that needs
it for a gradient.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import record

from tensorboard_plugin_memest.estimation.accumulated import Accumulated
from tensorboard_plugin_memest.estimation.births import Birth, births_of
from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.eager import EagerRun, ScratchGraph
from tensorboard_plugin_memest.estimation.graph import StepGraph, traced_graph
from tensorboard_plugin_memest.estimation.lowering import CALLS, CONDITIONALS, LOOPS
from tensorboard_plugin_memest.estimation.trace import ObservedGraph, Owners, Trace, few, traced_by
from tensorboard_plugin_memest.estimation.unrolled import unrolled
from tensorboard_plugin_memest.estimation.values import values_known
from tensorboard_plugin_memest.memory.units import format_bytes

# What these give is no memory.
_NO_MEMORY = {"VarHandleOp", "Placeholder"}
_NO_DATA = (tf.resource, tf.variant)

READ = "ReadVariableOp"
# Tensors of fewer bytes may outlive a step untold.
_WORTH_A_WORD = 2**16

# Beginnings of the names of ops that may give a variable other memory.
_CHANGES = ("Assign", "Resource")


@dataclass(frozen=True)
class Change:
    """An op that changes a variable.

    Attributes:
        position: how many steps of the run come before it.
        kind: the op's type.
        handle: the variable's.
        value: number of the tensor that the variable gets or is changed by; None if that is none of the run's.
    """

    position: int
    kind: str
    handle: Any
    value: int | None


@dataclass(frozen=True)
class EagerStep:
    """One step that runs eagerly.

    Attributes:
        phase: `"first_step"`, `"step"`, `"evaluate"` or `"predict"`. Without one of its own the first step is as all.
        batch: (name, shape, dtype) of each tensor that it is fed.
        run: what it makes and gives up.
        graph: its ops.
        reads: the handle of its variable for each tensor that was read of one.
        changes: what happens to variables, in order.
        names: for each tensor that it makes, the name of the op.
        owners: who made which op.
        assumptions: what could not be seen.
        accumulated: what a prediction keeps of its batches; None for other phases.
        births: what comes to be in the first step, each with how many steps of the run come before it.
        held: numbers of the tensors that something holds when the step has returned and nobody has what it returned.
    """

    phase: str
    batch: Sequence[tuple[str, tuple[int, ...], str]]
    run: EagerRun
    graph: StepGraph
    reads: Mapping[int, Any]
    changes: Sequence[Change]
    names: Sequence[str]
    owners: Owners
    assumptions: list[str]
    accumulated: Accumulated | None = None
    births: Sequence[tuple[int, Birth]] = ()
    held: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Followed:
    """An eager step and what else was seen when it was followed.

    Attributes:
        step: the step.
        trace: its ops as a graph, its layers and its variables.
        created: for each variable that it created, how many steps of the run come before that.
    """

    step: EagerStep
    trace: Trace
    created: Sequence[int]


@dataclass(frozen=True)
class FollowedSteps:
    """Eager steps and what else was seen when they were followed.

    Attributes:
        trace: one of training as a graph, its layers and its variables; of prediction where nothing is trained.
        births: the variables that were created, each with its number among the creations.
        others: names of those that are nobody's.
        steps: each kind once, in the order of the phases.
    """

    trace: Trace
    births: Sequence[tuple[int, Birth]]
    others: list[str]
    steps: list[EagerStep]


def followed_training(
    function: Callable[..., Any],
    specs: Sequence[Any],
    find: Callable[[], list[Any]],
    creations: Creations,
    before: int = 0,
) -> FollowedSteps:
    """The steps of a training, followed: the first by itself, where it creates something.

    Args:
        function: as for `follow`.
        specs: as for `follow`.
        find: as for `follow`.
        creations: as for `follow`.
        before: how many creations are none of the first step's.

    Raises:
        Exception: whatever the function raises.
    """
    begun = len(creations.all)
    first = follow("first_step", function, specs, find, creations)
    # A call that creates something may do other things than later ones.
    later = follow("step", function, specs, find, creations) if first.created else first
    births, others = births_of(creations, later.trace)
    places = dict(enumerate(first.created, begun))
    born = [(places.get(number, 0), birth) for number, birth in births if number >= before]
    steps = [replace(first.step, phase="step")] if later is first else [replace(first.step, births=born), later.step]
    return FollowedSteps(later.trace, births, others, steps)


def follow(
    phase: str,
    function: Callable[..., Any],
    specs: Sequence[Any],
    find: Callable[[], list[Any]],
    creations: Creations,
    keep: Callable[[Sequence[Any]], Accumulated] | None = None,
) -> Followed:
    """Runs `function` once in a scratch graph; call it where what it uses is put back as it was afterwards.

    Args:
        phase: the phase that the step is of.
        function: what runs eagerly.
        specs: of its arguments.
        find: the layers, optimizers, metrics and variables that it uses; asked again once they are built.
        creations: where variables are recorded that are created meanwhile.
        keep: what is kept of the tensors that the step returns; None for nothing.

    Raises:
        Exception: whatever the function raises.
    """
    # Of a step that failed half-way only what it created is there for the next attempt.
    begun = len(creations.all)
    try:
        graph, fed, kept, notes = _run(phase, function, specs, find, creations, keep, _as_python_does())
    except Exception as error:
        try:
            # Some loops depend on values that only a run has.
            graph, fed, kept, notes = _run(phase, function, specs, find, creations, keep, contextlib.nullcontext([]))
        except Exception:
            # Without values there are further reasons to fail.
            raise error from None
    inside = sorted({op.type for op in graph.get_operations()} & (LOOPS | CONDITIONALS | CALLS))
    if inside:
        notes.append(
            f"The step has parts that an eager step runs one op after another ({', '.join(inside)}); of these only the "
            "results were counted."
        )
    trace = traced_by(graph, find)
    # Inside a graph a handle from outside has a stand-in.
    outside = {id(internal): external for external, internal in graph.captures}
    step = EagerStep(
        phase=phase,
        batch=fed,
        run=graph.run_so_far,
        graph=traced_graph(graph),
        reads={number: outside.get(id(handle), handle) for number, handle in graph.reads.items()},
        changes=[replace(one, handle=outside.get(id(one.handle), one.handle)) for one in graph.changes],
        names=graph.names,
        owners=trace.owners,
        assumptions=notes,
        accumulated=kept,
        held=graph.held,
    )
    notes += [*_held_in_words(step), *trace.assumptions]
    missed = len(creations.all) - begun - len(graph.created)
    return Followed(step, trace, [0] * missed + graph.created)


def returned_eagerly(function: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """What `function` returns for arguments of the specs `specs` where it runs eagerly, as symbolic tensors.

    Raises:
        Exception: whatever the function raises.
    """
    with ScratchGraph().as_default(), record.stop_recording(), _as_python_does():
        return function(*(tf.nest.map_structure(_placeholder, spec) for spec in specs))


def _held_in_words(step: EagerStep) -> list[str]:
    """What is said of tensors that outlive the step."""
    held = sorted(step.held - step.reads.keys(), key=lambda number: -step.run.made[number].bytes)
    total = sum(step.run.made[number].bytes for number in held)
    if total < _WORTH_A_WORD:
        return []
    return [
        f"When the step has returned, something still holds {format_bytes(total)} of what it made "
        f"({few([step.names[number] for number in held])}); that was counted until the next step makes the like. If a "
        "list or the like gets it, every step adds as much: keep float(...) or .numpy() of it."
    ]


@contextlib.contextmanager
def _as_python_does() -> Iterator[list[str]]:
    with unrolled() as followed, values_known() as asked:
        notes: list[str] = []
        yield notes
        notes += followed + asked


def _run(
    phase: str,
    function: Callable[..., Any],
    specs: Sequence[Any],
    find: Callable[[], list[Any]],
    creations: Creations,
    keep: Callable[[Sequence[Any]], Accumulated] | None,
    followed: contextlib.AbstractContextManager[list[str]],
) -> tuple[_EagerGraph, list[tuple[str, tuple[int, ...], str]], Accumulated | None, list[str]]:
    """The graph of one step that was run, what it was fed, what of it is kept, and what had to be assumed."""
    things = find()
    graph = _EagerGraph(phase, things, creations)
    with graph.as_default(), record.stop_recording():
        fed = [tf.nest.map_structure(_placeholder, spec) for spec in specs]
    tensors = [one for one in tf.nest.flatten(fed, expand_composites=True) if one.dtype not in _NO_DATA]
    names = [(tensor.op.name, tuple(tensor.shape), tensor.dtype.name) for tensor in tensors]
    with followed as notes, graph.as_default(), graph.metrics_observed():
        kept = _call(function, fed, keep)
        held = None
        while held != graph.held:
            # What goes may have held something else.
            held = graph.held
            graph.sweep()
    return graph, names, kept, list(dict.fromkeys(notes))


def _placeholder(spec: Any) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return tf.compat.v1.placeholder(spec.dtype, spec.shape, spec.name)
    parts = [tf.compat.v1.placeholder(part.dtype, part.shape) for part in tf.nest.flatten(spec._component_specs)]
    return spec._from_components(tf.nest.pack_sequence_as(spec._component_specs, parts))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _call(
    function: Callable[..., Any], fed: Sequence[Any], keep: Callable[[Sequence[Any]], Accumulated] | None
) -> Accumulated | None:
    returned = function(*fed)
    return None if keep is None else keep([tf.convert_to_tensor(one) for one in keras.tree.flatten(returned)])


class _EagerGraph(ScratchGraph, ObservedGraph):
    """A graph that notes what lives how long, and who made it."""

    def __init__(self, name: str, things: list[Any], creations: Creations) -> None:
        super().__init__(name, things)
        self._creations = creations
        self._seen = len(creations.all)
        self.created: list[int] = []  # how many steps come before each variable that is created
        self.names: list[str] = []
        self.reads: dict[int, Any] = {}
        self.changes: list[Change] = []

    def sweep(self, *, fully: bool = True) -> None:
        missing = len(self._creations.all) - self._seen - len(self.created)
        super().sweep(fully=fully or missing > 0)
        self.created += [len(self.run_so_far.steps)] * missing

    def _record(self, op: Any, inputs: Any) -> None:
        if op.type in _NO_MEMORY:
            return
        super()._record(op, inputs)
        if op.type == READ:
            self.reads.update((number, inputs[0]) for number in range(len(self.names), len(self.run_so_far.made)))
        elif op.type.startswith(_CHANGES) and inputs[0].dtype == tf.resource:
            value = self.number_of(inputs[1]) if len(inputs) > 1 else None
            self.changes.append(Change(len(self.run_so_far.steps), op.type, inputs[0], value))
        self.names += [op.name] * (len(self.run_so_far.made) - len(self.names))
