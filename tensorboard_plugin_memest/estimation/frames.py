"""Which loop each node of a step's graph runs in.

Source of the rules: `control_flow.cc` (`BuildControlFlowInfo`) in `tensorflow/core/graph`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorboard_plugin_memest.estimation.graph import Node, StepGraph


def frame_name(node: Node) -> str:
    """The loop that an Enter node leads into."""
    return str(node.attributes["frame_name"].s.decode())


def frames_of(graph: StepGraph) -> list[str]:
    """For each node, the name of the innermost loop that it runs in; empty outside of all loops."""
    frames = [""] * len(graph.nodes)
    outside: dict[str, str] = {}
    for index in topological(graph):
        node = graph.nodes[index]
        sources = [source for source, _ in node.inputs] + node.control_inputs
        around = next((frames[source] for source in sources if graph.nodes[source].op != "NextIteration"), "")
        if node.op == "Enter":
            frames[index] = frame_name(node)
            outside[frames[index]] = around
        elif node.op == "Exit":
            frames[index] = outside[around]
        else:
            frames[index] = around
    return frames


def topological(graph: StepGraph) -> Iterator[int]:
    """All nodes, each behind those that it waits for; what the iteration before hands on is not waited for."""
    pending = [0] * len(graph.nodes)
    followers: list[list[int]] = [[] for _ in graph.nodes]
    for index, node in enumerate(graph.nodes):
        for source in (*(source for source, _ in node.inputs), *node.control_inputs):
            if not goes_on(graph, source, index):
                followers[source].append(index)
                pending[index] += 1
    ready = [index for index, count in enumerate(pending) if count == 0]
    while ready:
        index = ready.pop()
        yield index
        for follower in followers[index]:
            pending[follower] -= 1
            if pending[follower] == 0:
                ready.append(follower)


def goes_on(graph: StepGraph, source: int, node: int) -> bool:
    """Whether what leads from one node to another leads into the next iteration of a loop."""
    return graph.nodes[source].op == "NextIteration" and graph.nodes[node].op == "Merge"
