"""Branches of a step: what runs only in one, which makes more memory, and in which step which is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tensorboard_plugin_memest.estimation.frames import goes_on, topological
from tensorboard_plugin_memest.estimation.graph import Node, StepGraph, Value
from tensorboard_plugin_memest.estimation.known import results_of, scalar
from tensorboard_plugin_memest.estimation.variables import Variable

if TYPE_CHECKING:
    from tensorboard_plugin_memest.estimation.execution import Plan

SWITCHES = {"Switch", "_SwitchN"}

# What decides between branches, and one of them.
Condition = tuple[tuple[int, int], int]

# What is true if any of its inputs is, whatever its shape.
_ANY = {"Any", "ExpandDims", "Identity", "LogicalOr", "Reshape", "Squeeze"}

# So many steps are looked at for those that take other branches: gradients are hardly summed over more.
MOST_STEPS = 256

# So many kinds of steps whose loops run differently often are told apart.
MOST_LOOPING = 9


def conditions_of(graph: StepGraph) -> list[frozenset[Condition]]:
    """For each node, on which branches it depends that it runs; what decides whether a loop goes on is none."""
    conditions: list[frozenset[Condition]] = [frozenset()] * len(graph.nodes)
    if not any(node.op in SWITCHES for node in graph.nodes):
        return conditions
    for index in topological(graph):
        node = graph.nodes[index]
        comes = [
            conditions[source] | _of_edge(graph.nodes[source], output)
            for source, output in node.inputs
            if not goes_on(graph, source, index)
        ]
        if node.op == "Merge":
            conditions[index] = frozenset.intersection(*comes)
        else:
            waits = [conditions[source] for source in node.control_inputs]
            conditions[index] = frozenset[Condition]().union(*comes, *waits)
    # The node that decides about a loop stands for no branch.
    return [
        frozenset(one for one in found if graph.nodes[one[0][0]].op != "LoopCond") if found else found
        for found in conditions
    ]


def _of_edge(source: Node, output: int) -> frozenset[Condition]:
    return frozenset([(source.inputs[1], output)]) if source.op in SWITCHES else frozenset()


def likely_branches(graph: StepGraph, conditions: Sequence[frozenset[Condition]]) -> dict[tuple[int, int], int]:
    """By what decides between branches, which of them is reckoned with where no more is known.

    That is the one that makes more bytes; but that something is not a number, or is divided by zero, is taken for a
    mishap: Keras asks so of each divisor of a sparse gradient, and would then make it a dense one.
    """
    weights: dict[tuple[int, int], dict[int, int]] = {}
    for node in graph.nodes:
        if node.op in SWITCHES and graph.nodes[node.inputs[1][0]].op != "LoopCond":
            weights.setdefault(node.inputs[1], {}).update(dict.fromkeys(range(len(node.outputs)), 0))
    for node, found in zip(graph.nodes, conditions, strict=True):
        for decider, branch in found:
            weights[decider][branch] += sum(output.bytes for output in node.outputs)
    # Of equal ones the last, which in a conditional is that of what is true.
    return {
        decider: 0 if _is_mishap(graph, decider[0]) else max(branches, key=lambda branch: (branches[branch], branch))
        for decider, branches in weights.items()
    }


def _is_mishap(graph: StepGraph, index: int) -> bool:
    """Whether a node is true as soon as something is not a number."""
    node = graph.nodes[index]
    if node.op in ("IsNan", "IsInf"):
        return True
    return node.op in _ANY and any(_is_mishap(graph, source) for source, _ in node.inputs)


def kinds_of_steps(graph: StepGraph, plan: Plan, values: Mapping[Variable, Value]) -> dict[int, dict[Variable, Value]]:
    """Steps that take other branches than each other, or whose loops run differently often, for a variable counts them.

    Args:
        graph: the step.
        plan: of the graph.
        values: what variables hold before the first step, as far as it is known.

    Returns:
        For the first step of each kind, by which step of the training that is, what the variables hold before it.
    """
    now = dict(values)
    if not any(graph.nodes[index].op.startswith("Assign") for index in plan.deciding):
        return {0: now}
    nodes = [index for index in topological(graph) if index in plan.deciding]
    branching: dict[tuple[int, ...], tuple[int, dict[Variable, Value]]] = {}
    looping = dict(branching)
    for number in range(MOST_STEPS):
        before = dict(now)
        taken, entered = _step(graph, plan, nodes, now)
        branching.setdefault(taken, (number, before))
        looping.setdefault((*taken, *entered), (number, before))
        if now == before:
            break
    # Where every step has loops of other lengths they are no kinds.
    return dict((looping if len(looping) <= MOST_LOOPING else branching).values())


def _step(
    graph: StepGraph, plan: Plan, nodes: Sequence[int], now: dict[Variable, Value]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which branches a step takes, and which small numbers its loops begin with; changes what the variables hold."""
    known: dict[tuple[int, int], Value] = {}

    def taken(decider: tuple[int, int]) -> int:
        value = scalar(known.get(decider))
        return plan.likely[decider] if value is None else value

    for index in nodes:
        if any(taken(decider) != branch for decider, branch in plan.conditions[index]):
            continue
        for output, value in enumerate(worked_out(graph, plan, index, known, now)):
            if value is not None:
                known[index, output] = value
    entered = (scalar(known.get((index, 0))) for index in nodes if graph.nodes[index].op == "Enter")
    return tuple(taken(decider) for decider in plan.likely), tuple(-1 if one is None else one for one in entered)


def worked_out(
    graph: StepGraph,
    plan: Plan,
    index: int,
    known: Mapping[tuple[int, int], Value],
    values: dict[Variable, Value],
) -> list[Value | None]:
    """The values of the outputs of a node that decides what runs; an assignment changes those of variables."""
    node = graph.nodes[index]
    if index in plan.constants:
        return [plan.constants[index]]
    inputs = [known.get(source) for source in node.inputs]
    variable = graph.variable_of.get(node.inputs[0][0]) if node.inputs else None
    if variable is not None and node.op == "ReadVariableOp":
        return [values.get(variable)]
    if variable is None or not node.op.startswith("Assign"):
        return results_of(graph, index, inputs)
    old, now = values.get(variable), inputs[1]
    if now is not None and node.op != "AssignVariableOp":
        change = now if node.op == "AssignAddVariableOp" else -now
        now = None if old is None else old + change
    if now is None:
        values.pop(variable, None)
    else:
        values[variable] = now
    return []
