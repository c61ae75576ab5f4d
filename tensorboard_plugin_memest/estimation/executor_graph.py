"""What leads where in the graph that the executor gets, in the order in which it looks at it.

Source of the rules: `mkl_layout_pass.cc` puts a new node, behind all others, in the place of one whose kernel oneDNN
has; importing a function's body (`graph_constructor.cc`) takes the first node, in that order, whose inputs are there.
A graph (`edgeset.h`, `flatrep.h`) keeps the edges that leave a node in the order in which they came, but from the ninth
on in a table that is ordered by their addresses: so it does the edges to all nodes that wait for nothing.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass

from tensorboard_plugin_memest.estimation.frames import goes_on
from tensorboard_plugin_memest.estimation.graph import Node, StepGraph
from tensorboard_plugin_memest.estimation.onednn import is_replaced, merged_bias_gradients

# More edges than this are kept in a table.
ORDERED_EDGES = 8

# An edge's size. Edges are made one after another, in one piece of memory; where that begins, chance decides.
_EDGE_BYTES = 32
_BEGINNINGS = range(0, 2**24, 16)


@dataclass(frozen=True)
class Edges:
    """What leads where in the executor's graph.

    Attributes:
        roots: the nodes that wait for nothing, in the order in which they are started.
        followers: for each node, the nodes that wait for it, once for each edge, data before control, in the order in
            which they are looked at when it is done.
    """

    roots: list[int]
    followers: list[list[int]]


def edges_of(graph: StepGraph) -> Edges:
    """The edges of a graph in the order of its nodes."""
    return _edges(graph, range(len(graph.nodes)))


def executor_edges(graph: StepGraph, *, onednn: bool, seed: int, plain: Edges | None = None) -> Edges:
    """The edges of a step's graph as the executor sees them.

    Args:
        graph: nodes in the order of the optimized graph.
        onednn: whether oneDNN's kernels replace TensorFlow's.
        seed: addresses decide about some of it; one seed for each way they can.
        plain: what `edges_of` gives, if somebody has asked it already.
    """
    chance = random.Random(seed)
    plain = plain or edges_of(graph)
    places = list(range(len(graph.nodes)))
    if onednn:
        replaced = [index for index in _reverse_postorder(graph, plain, chance) if is_replaced(graph.nodes[index])]
        for place, index in enumerate(replaced, len(places)):
            places[index] = place
    return _in_tables(graph, _edges(graph, _imported(graph, plain, places)), chance)


def _edges(graph: StepGraph, order: Sequence[int]) -> Edges:
    followers: list[list[int]] = [[] for _ in graph.nodes]
    for index in order:
        for source, _ in graph.nodes[index].inputs:
            followers[source].append(index)
    for index in order:
        for source in graph.nodes[index].control_inputs:
            followers[source].append(index)
    return Edges([index for index in order if _waits_for_nothing(graph.nodes[index])], followers)


def _waits_for_nothing(node: Node) -> bool:
    return not node.inputs and not node.control_inputs


def _imported(graph: StepGraph, plain: Edges, places: Sequence[int]) -> list[int]:
    """All nodes, the one with the lowest place first among those whose inputs are there."""
    waiting = [len(node.inputs) + len(node.control_inputs) for node in graph.nodes]
    # What comes from the iteration before is not waited for.
    following = {index for index, node in enumerate(graph.nodes) if node.op == "NextIteration"}
    for source in following:
        for follower in plain.followers[source]:
            waiting[follower] -= goes_on(graph, source, follower)
    ready = [(places[index], index) for index, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, index = heapq.heappop(ready)
        order.append(index)
        for follower in plain.followers[index]:
            if index in following and goes_on(graph, index, follower):
                continue
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (places[follower], follower))
    return order


def _reverse_postorder(graph: StepGraph, plain: Edges, chance: random.Random) -> list[int]:
    """All nodes, each before those that follow from it; the last way that leads on is gone first."""
    # In the graph itself, before the executor sorts them, edges are as they came, whatever their kind.
    mixed = [sorted(followers) for followers in plain.followers]
    for bias, convolution in merged_bias_gradients(graph):
        _merge(graph, mixed, bias, convolution)
    edges = _in_tables(graph, Edges(plain.roots, mixed), chance)
    seen = [False] * len(graph.nodes)
    order: list[int] = []
    stack = [(index, False) for index in edges.roots]
    while stack:
        index, done = stack.pop()
        if done:
            order.append(index)
            continue
        if seen[index]:
            continue
        seen[index] = True
        stack.append((index, True))
        stack.extend((follower, False) for follower in edges.followers[index] if not seen[follower])
    order.reverse()
    return order


def _merge(graph: StepGraph, followers: list[list[int]], bias: int, convolution: int) -> None:
    """What merging two nodes does to edges: a third comes behind them, and the last edge fills each gap they leave."""
    source = graph.nodes[convolution].inputs[2][0]
    edges = [*sorted([*followers[source], bias]), convolution]
    for gone in (bias, convolution):
        place = edges.index(gone)
        edges[place] = edges[-1]
        edges.pop()
    followers[source] = edges
    followers[convolution] = [*(one for one in followers[convolution] if one != bias), bias]


def _in_tables(graph: StepGraph, edges: Edges, chance: random.Random) -> Edges:
    """`edges`, in the order of their addresses where there are many from one node."""
    beginning = chance.choice(_BEGINNINGS)
    made = 0
    followers = []
    for following in edges.followers:
        if len(following) > ORDERED_EDGES:
            following = _ordered(following, range(made, made + len(following)), beginning)
        followers.append(following)
        made += len(following)
    # Last come the edges to what waits for nothing, and between them those from what nothing waits for.
    numbers = []
    made = 0
    for node, following in zip(graph.nodes, followers, strict=True):
        if _waits_for_nothing(node):
            numbers.append(made)
            made += 1
        made += not following
    return Edges(_ordered(edges.roots, numbers, beginning), followers)


def _ordered(items: Sequence[int], numbers: Sequence[int], beginning: int) -> list[int]:
    """The far ends of edges in the order in which a table has them.

    Args:
        items: the far ends.
        numbers: how many edges were made before each.
        beginning: the address of the first edge.
    """
    if len(items) <= ORDERED_EDGES:
        return list(items)
    table, most = _table(1)
    for count, (item, number) in enumerate(zip(items, numbers, strict=True)):
        if count >= most:
            held = [entry for entry in table if entry is not None]
            table, most = _table(count + 1)
            for entry in held:
                _insert(table, entry)
        _insert(table, (beginning + number * _EDGE_BYTES, item))
    return [entry[1] for entry in table if entry is not None]


def _table(size: int) -> tuple[list[tuple[int, int] | None], int]:
    """An empty table for `size` entries, and how many fill it."""
    places = 8
    while size >= 0.8 * places:
        places *= 2
    return [None] * places, int(places * 0.8)


def _insert(table: list[tuple[int, int] | None], entry: tuple[int, int]) -> None:
    address, _ = entry
    place = ((address + (address >> 6)) >> 8) % len(table)
    probes = 1
    while table[place] is not None:
        place = (place + probes) % len(table)
        probes += 1
    table[place] = entry
