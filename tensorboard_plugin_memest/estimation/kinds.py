"""Kinds of steps: with other branches taken, or loops of other lengths, since a variable counts the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorboard_plugin_memest.estimation.frames import topological
from tensorboard_plugin_memest.estimation.graph import StepGraph, Value
from tensorboard_plugin_memest.estimation.known import results_of, scalar
from tensorboard_plugin_memest.estimation.plan import Plan
from tensorboard_plugin_memest.estimation.variables import Variable

# So many steps are looked at for those that take other branches: gradients are hardly summed over more.
MOST_STEPS = 256

# So many kinds of steps whose loops run differently often are told apart.
MOST_LOOPING = 9


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
