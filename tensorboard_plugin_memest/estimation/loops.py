"""How often a loop runs."""

from __future__ import annotations

from collections.abc import Mapping

from tensorboard_plugin_memest.estimation.graph import StepGraph, constant_value


def iterations(graph: StepGraph, index: int, known: Mapping[int, int]) -> int | None:
    """How often the loop at node `index` runs, from the bounds its condition compares counters with.

    Keras' and TensorFlow's loops count from 0 to constants, the smallest of which decides; the loop of a gradient
    counts to how often its forward loop ran.

    Args:
        graph: the graph that holds the loop.
        index: the loop's node.
        known: how often the loops before it run, by node.

    Returns:
        The number of iterations; None if it is decided in the run.
    """
    condition = graph.function(index, "cond")
    inputs = graph.nodes[index].inputs
    bounds = []
    for node in condition.nodes:
        if node.op not in ("Less", "LessEqual"):
            continue
        source = node.inputs[1][0]
        value = constant_value(condition.nodes[source])
        if value is None and source in condition.arguments:
            outer, _ = inputs[condition.arguments.index(source)]
            value = constant_value(graph.nodes[outer])
            if outer in known:
                bounds.append(known[outer])
        if value is not None and value.size == 1:
            bounds.append(int(value) + (node.op == "LessEqual"))
    return max(0, min(bounds)) if bounds else None
