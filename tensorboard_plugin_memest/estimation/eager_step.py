"""A model's step as it runs eagerly: what each op makes, and how long Python and the gradient tape hold it.

The step's Python code runs once in a scratch graph, where tensors are symbolic but are held by the same references as
eager ones would be: a tensor goes when nobody refers to it any more, neither a Python variable nor the tape that needs
it for a gradient.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import record

from tensorboard_plugin_memest.estimation.accumulated import Accumulated
from tensorboard_plugin_memest.estimation.eager import EagerRun, ScratchGraph
from tensorboard_plugin_memest.estimation.graph import StepGraph, traced_graph
from tensorboard_plugin_memest.estimation.layers import LayerPaths
from tensorboard_plugin_memest.estimation.lowering import CALLS, CONDITIONALS, LOOPS
from tensorboard_plugin_memest.estimation.reachable import optimizers_of
from tensorboard_plugin_memest.estimation.subject import Batch
from tensorboard_plugin_memest.estimation.trace import ObservedGraph, Owners, UntraceableError
from tensorboard_plugin_memest.estimation.unrolled import unrolled

# What these give is no memory.
_NO_MEMORY = {"VarHandleOp", "Placeholder"}

READ = "ReadVariableOp"
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
        phase: `"step"`, `"evaluate"` or `"predict"`.
        batch: (name, shape, dtype) of each tensor that it is fed.
        run: what it makes and gives up.
        graph: its ops.
        reads: the handle of its variable for each tensor that was read of one.
        changes: what happens to variables, in order.
        update: how many steps of the run come before the optimizer gets gradients; None if it gets none.
        names: for each tensor that it makes, the name of the op.
        owners: who made which op.
        assumptions: what could not be seen.
        accumulated: what a prediction keeps of its batches; None for other phases.
    """

    phase: str
    batch: Sequence[tuple[str, tuple[int, ...], str]]
    run: EagerRun
    graph: StepGraph
    reads: Mapping[int, Any]
    changes: Sequence[Change]
    update: int | None
    names: Sequence[str]
    owners: Owners
    assumptions: list[str]
    accumulated: Accumulated | None = None


def eager_step(
    model: keras.Model,
    batch: Batch,
    phase: str,
    method: str,
    keep: Callable[[Sequence[Any]], Accumulated] | None = None,
) -> EagerStep:
    """Runs `model.<method>` for one batch in a scratch graph; call it where the model is put back as it was afterwards.

    Args:
        model: compiled; its optimizer's and metrics' variables exist.
        batch: specs of the data.
        phase: the phase that the step is of.
        method: `"train_step"`, `"test_step"` or `"predict_step"`.
        keep: what is kept of the tensors that the step returns; None for nothing.

    Raises:
        UntraceableError: the step cannot be run.
    """
    try:
        graph, fed, kept, notes = _run(model, batch, method, keep, unrolled())
    except Exception:
        # Some loops depend on values that only a run has.
        try:
            graph, fed, kept, notes = _run(model, batch, method, keep, contextlib.nullcontext([]))
        except Exception as error:
            raise UntraceableError(
                f"The model {model.name!r} ({type(model).__name__}) cannot be run eagerly on paper: "
                f"{type(error).__name__}: {error}"
            ) from error
    inside = sorted({op.type for op in graph.get_operations()} & (LOOPS | CONDITIONALS | CALLS))
    if inside:
        notes.append(
            f"The step has parts that an eager step runs one op after another ({', '.join(inside)}); of these only the "
            "results were counted."
        )
    return EagerStep(
        phase=phase,
        batch=fed,
        run=graph.run_so_far,
        graph=traced_graph(graph),
        reads=graph.reads,
        changes=graph.changes,
        update=graph.update,
        names=graph.names,
        owners=graph.owners(LayerPaths(model)),
        assumptions=notes,
        accumulated=kept,
    )


def _run(
    model: keras.Model,
    batch: Batch,
    method: str,
    keep: Callable[[Sequence[Any]], Accumulated] | None,
    followed: contextlib.AbstractContextManager[list[str]],
) -> tuple[_EagerGraph, list[tuple[str, tuple[int, ...], str]], Accumulated | None, list[str]]:
    """The graph of one step that was run, what it was fed, what of it is kept, and what had to be assumed."""
    graph = _EagerGraph(method, [model])
    with graph.as_default(), record.stop_recording():
        fed = keras.tree.map_structure(lambda spec: tf.compat.v1.placeholder(spec.dtype, spec.shape), batch.data)
    graph.observe_updates(optimizers_of([model]))
    with followed as notes, graph.as_default(), graph.metrics_observed():
        kept = _call(getattr(model, method), fed, keep)
    graph.sweep()
    names = [(tensor.op.name, tuple(tensor.shape), tensor.dtype.name) for tensor in keras.tree.flatten(fed)]
    return graph, names, kept, list(dict.fromkeys(notes))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _call(step: Callable[[Any], Any], fed: Any, keep: Callable[[Sequence[Any]], Accumulated] | None) -> Any:
    returned = step(fed)
    return None if keep is None else keep(keras.tree.flatten(returned))


class _EagerGraph(ScratchGraph, ObservedGraph):
    """A graph that notes what lives how long, and who made it."""

    def __init__(self, name: str, things: list[Any]) -> None:
        super().__init__(name, things)
        self.names: list[str] = []
        self.reads: dict[int, Any] = {}
        self.changes: list[Change] = []
        self.update: int | None = None

    def observe_updates(self, optimizers: Sequence[keras.optimizers.Optimizer]) -> None:
        """Notes when the first of `optimizers` gets gradients.

        The attributes that this takes are left to whoever puts the optimizers back as they were.
        """

        def noted(apply: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(apply)
            def begun(*args: Any, **kwargs: Any) -> Any:
                if self.update is None:
                    self.sweep()
                    self.update = len(self.run_so_far.steps)
                return apply(*args, **kwargs)

            return begun

        for optimizer in optimizers:
            vars(optimizer)["apply"] = noted(optimizer.apply)

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
