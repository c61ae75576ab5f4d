"""Branches of a step: what runs only in one, which makes more memory, and in which step which is taken."""

from __future__ import annotations

from collections.abc import Sequence

from tensorboard_plugin_memest.estimation.frames import goes_on, topological
from tensorboard_plugin_memest.estimation.graph import Node, StepGraph

SWITCHES = {"Switch", "_SwitchN"}

# What decides between branches, and one of them.
Condition = tuple[tuple[int, int], int]

# What is true if any of its inputs is, whatever its shape.
_ANY = {"Any", "ExpandDims", "Identity", "LogicalOr", "Reshape", "Squeeze"}


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
