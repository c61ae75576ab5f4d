"""Runs in which memory does not matter: how often loops run, and what decides how large tensors are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tensorboard_plugin_memest.estimation.events import Buffer
from tensorboard_plugin_memest.estimation.execution import Execution
from tensorboard_plugin_memest.estimation.graph import Sizes, StepGraph, Value
from tensorboard_plugin_memest.estimation.kinds import kinds_of_steps
from tensorboard_plugin_memest.estimation.known import larger
from tensorboard_plugin_memest.estimation.order import InlineOrder
from tensorboard_plugin_memest.estimation.program import Program, Trial
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tensorboard_plugin_memest.estimation.variables import Variable


def trial_of(program: Program) -> Trial:
    """What a run of a program comes to; found once."""
    if program.trial is None:
        if program.plan.loops or program.plan.slots or program.called:
            run = _tried(program, program.values)
            program.trial = Trial(run.started, run.iterations, frozenset(run.undecided))
        else:
            program.trial = Trial(len(program.graph.nodes), {}, frozenset())
    return program.trial


def sizes_in(program: Program) -> Sizes:
    """What decides how large tensors are, where tracing did not find that out, in steps of every kind."""
    values: dict[int, Value] = {}
    joined: dict[int, list[int]] = {}
    for before in kinds_of_steps(program.graph, program.plan, program.values).values():
        run = _tried(program, before)
        values |= {index: larger(values.get(index), value) for index, value in run.values.items()}
        joined |= {index: max(joined.get(index, []), sizes, key=sum) for index, sizes in run.joined.items()}
    return _sizes(program.graph, values, joined)


def _tried(program: Program, values: Mapping[Variable, Value]) -> Execution:
    """A run in which memory does not matter; `values` are what variables hold before it."""
    handles = set(program.graph.variable_of.values())
    buffers = {variable: Buffer(variable.bytes, 1, is_resident=True) for variable in handles}
    run = Execution(program, InlineOrder(), VariableStore(buffers, values=dict(values)))
    run.run()
    return run


def _sizes(graph: StepGraph, values: Mapping[int, Value], joined: Mapping[int, Sequence[int]]) -> Sizes:
    arrays = {
        graph.nodes[index].name: value.astype(graph.nodes[index].outputs[0].dtype)
        for index, value in values.items()
        if isinstance(value, np.ndarray) and len(graph.nodes[index].outputs) == 1
    }
    shapes = {}
    for index, elements in joined.items():
        node = graph.nodes[index]
        whole, *others = node.outputs
        if whole.shape and whole.bytes:
            rows = sum(size or max(elements) for size in elements) * whole.shape[0] // whole.bytes
            shapes[node.name] = [(rows, *whole.shape[1:]), *((len(elements),) for _ in others)]
    return Sizes(arrays, shapes)
