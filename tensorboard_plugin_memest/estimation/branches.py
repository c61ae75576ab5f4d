"""Which of several branches makes more memory: the one to reckon with where only the run decides."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.frames import goes_on, topological
from tensorboard_plugin_memest.estimation.graph import StepGraph

_SWITCHES = {"Switch", "_SwitchN"}


def heavier_branches(graph: StepGraph) -> dict[tuple[int, int], int]:
    """By what decides between branches, which of them makes more bytes."""
    deciders: dict[tuple[int, int], int] = {}
    for node in graph.nodes:
        if node.op in _SWITCHES and graph.nodes[node.inputs[1][0]].op != "LoopCond":
            deciders[node.inputs[1]] = max(len(node.outputs), deciders.get(node.inputs[1], 0))
    if not deciders:
        return {}
    order = list(topological(graph))
    heavier = {}
    for decider, branches in deciders.items():
        weights = [_weight(graph, order, decider, branch) for branch in range(branches)]
        # Of equal ones the last, which in a conditional is that of what is true.
        heavier[decider] = max(range(branches), key=lambda branch: (weights[branch], branch))
    return heavier


def _weight(graph: StepGraph, order: list[int], decider: tuple[int, int], branch: int) -> int:
    """Bytes that nodes make which only run if `decider` chooses `branch`."""
    inside: set[int] = set()
    weight = 0
    for index in order:
        node = graph.nodes[index]
        sources = [(source, output) for source, output in node.inputs if not goes_on(graph, source, index)]
        comes = [
            source in inside
            or (graph.nodes[source].op in _SWITCHES and graph.nodes[source].inputs[1] == decider and output == branch)
            for source, output in sources
        ]
        if node.op == "Merge":
            is_inside = bool(comes) and all(comes)
        else:
            is_inside = any(comes) or any(source in inside for source in node.control_inputs)
        if is_inside:
            inside.add(index)
            weight += sum(output.bytes for output in node.outputs)
    return weight
