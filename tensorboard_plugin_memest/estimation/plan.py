"""What every run of a graph has in common, worked out once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tensorboard_plugin_memest.estimation.branches import SWITCHES, Condition, conditions_of, likely_branches
from tensorboard_plugin_memest.estimation.executor_graph import Edges, edges_of
from tensorboard_plugin_memest.estimation.frames import frame_name
from tensorboard_plugin_memest.estimation.graph import Node, StepGraph, Value
from tensorboard_plugin_memest.estimation.known import constants, deciding, sizing
from tensorboard_plugin_memest.estimation.rules import OWN, Source, can_take_over, source_in

# Ops that make one tensor of a list's.
_JOINING = {"TensorListStack", "TensorListConcatV2"}

# How many iterations of a loop may be under way where it does not say.
_AT_ONCE = 10


@dataclass(frozen=True)
class LoopPlan:
    """A loop: how many values are given to it, and how many of its iterations may be under way at a time."""

    inputs: int
    at_once: int


@dataclass(frozen=True)
class Plan:
    """What does not change from run to run of a graph.

    Every output of a node has a number of its own, which stands for it here.

    Attributes:
        given: for each node, the outputs that it reads.
        made: for each node, its own outputs.
        readers: how often each output is read.
        fetched: the outputs that are returned.
        returned: how often each output is, where that is ever.
        edges: what leads where, in the order of the graph's nodes.
        waits_for: for each node, how many edges lead to it.
        sources: for each node, where each of its outputs comes from; only inputs that are fit are named.
        loops: the loops, by name.
        slots: for nodes that do not treat all that follow alike, or lead to where values meet: for each follower, the
            output that each edge to it carries, None where it is only waited for.
        deciding: nodes whose values decide what runs.
        sizing: those of them whose values may decide how large a tensor is.
        joining: nodes that make one tensor of a list's, of which tracing did not find out how many there are.
        constants: the values of those of them that are constants.
        conditions: for each node, on which branches it depends.
        likely: which branch is reckoned with where no more is known, by what decides between the branches.
    """

    given: list[list[int]]
    made: list[range]
    readers: list[int]
    fetched: list[int]
    returned: Counter[int]
    edges: Edges
    waits_for: list[int]
    sources: list[list[Source]]
    loops: dict[str, LoopPlan]
    slots: dict[int, dict[int, list[int | None]]]
    deciding: frozenset[int]
    sizing: frozenset[int]
    joining: frozenset[int]
    constants: dict[int, Value]
    conditions: list[frozenset[Condition]]
    likely: dict[tuple[int, int], int]


def plan_of(graph: StepGraph) -> Plan:
    """The plan of a graph."""
    starts = [0, *accumulate(len(node.outputs) for node in graph.nodes)]
    given = [[starts[source] + output for source, output in node.inputs] for node in graph.nodes]
    readers = [0] * starts[-1]
    for sources in given:
        for source in sources:
            readers[source] += 1
    fetched = [starts[source] + output for source, output in graph.fetches]
    nodes = deciding(graph)
    conditions = conditions_of(graph)
    return Plan(
        given=given,
        made=[range(start, end) for start, end in pairwise(starts)],
        readers=readers,
        fetched=fetched,
        returned=Counter(fetched),
        edges=edges_of(graph),
        waits_for=[len(node.inputs) + len(node.control_inputs) for node in graph.nodes],
        sources=[_sources(graph, node) for node in graph.nodes],
        loops=_loops(graph),
        slots=_slots(graph),
        deciding=nodes,
        sizing=sizing(graph) & nodes,
        joining=frozenset(index for index in graph.unsized if graph.nodes[index].op in _JOINING),
        constants=constants(graph, nodes),
        conditions=conditions,
        likely=likely_branches(graph, conditions),
    )


def _loops(graph: StepGraph) -> dict[str, LoopPlan]:
    loops: dict[str, LoopPlan] = {}
    for node in graph.nodes:
        if node.op == "Enter":
            known = loops.get(frame_name(node))
            at_once = node.attributes["parallel_iterations"].i or _AT_ONCE
            loops[frame_name(node)] = LoopPlan(known.inputs + 1 if known else 1, at_once)
    return loops


def _slots(graph: StepGraph) -> dict[int, dict[int, list[int | None]]]:
    told = {index for index, node in enumerate(graph.nodes) if node.op in SWITCHES}
    for node in graph.nodes:
        if node.op == "Merge":
            told |= {source for source, _ in node.inputs} | set(node.control_inputs)
    slots: dict[int, dict[int, list[int | None]]] = {index: {} for index in told}
    for index, node in enumerate(graph.nodes):
        for source, output in node.inputs:
            if source in told:
                slots[source].setdefault(index, []).append(output)
    for index, node in enumerate(graph.nodes):
        for source in node.control_inputs:
            if source in told:
                slots[source].setdefault(index, []).append(None)
    return slots


def _sources(graph: StepGraph, node: Node) -> list[Source]:
    given = [graph.nodes[source].outputs[output] for source, output in node.inputs]
    if not given:
        return [OWN] * len(node.outputs)
    sources = []
    for number, wanted in enumerate(node.outputs):
        source = source_in(graph, node, number)
        fit = tuple(candidate for candidate in source.reuses if can_take_over(given[candidate], wanted))
        sources.append(source if source.alias_of is not None else Source(reuses=fit))
    return sources
