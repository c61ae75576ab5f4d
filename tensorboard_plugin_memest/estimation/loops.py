"""How often a loop runs, and what decides that."""

from __future__ import annotations

from collections.abc import Mapping

from tensorboard_plugin_memest.estimation.graph import StepGraph, constant_value

# Comparisons of a counter with a bound: the sign of the counter's step, and whether the bound itself still counts.
_COMPARISONS = {"Less": (1, False), "LessEqual": (1, True), "Greater": (-1, False), "GreaterEqual": (-1, True)}

_COUNTS = ("int32", "int64")


def iterations(graph: StepGraph, index: int, known: Mapping[int, int]) -> int | None:
    """How often the loop at node `index` runs, from the bounds its condition compares counters with.

    Keras' and TensorFlow's loops count to constants, the nearest of which decides; the loop of a gradient counts to how
    often its forward loop ran.

    Args:
        graph: the graph that holds the loop.
        index: the loop's node.
        known: how often the loops before it run, by node.

    Returns:
        The number of iterations; None if it is decided in the run.
    """
    condition = graph.function(index, "cond")
    inputs = graph.nodes[index].inputs
    counts = []
    for node in condition.nodes:
        if node.op not in _COMPARISONS:
            continue
        counter, limit = (source for source, _ in node.inputs)
        if limit in condition.arguments and inputs[condition.arguments.index(limit)][0] in known:
            counts.append(known[inputs[condition.arguments.index(limit)][0]])
            continue
        bound = _value(graph, index, condition, limit)
        if (
            bound is None
            or counter not in condition.arguments
            or condition.nodes[counter].outputs[0].dtype not in _COUNTS
        ):
            continue
        sign, included = _COMPARISONS[node.op]
        first = _value(graph, index, condition, counter)
        step = _step(graph, index, condition.arguments.index(counter))
        # What is not known of a counter is what most of them do: begin at 0, and go on by 1.
        distance = sign * (bound - (first or 0)) + included
        counts.append(max(0, -(-distance // abs(step or 1))))
    return min(counts) if counts else None


def deciding(graph: StepGraph, index: int) -> frozenset[int]:
    """Positions of the arguments that the condition of the loop at node `index` looks at."""
    condition = graph.function(index, "cond")
    seen: set[int] = set()
    waiting = [node for node, _ in condition.fetches]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [source for source, _ in condition.nodes[node].inputs]
    return frozenset(position for position, argument in enumerate(condition.arguments) if argument in seen)


def _value(graph: StepGraph, index: int, called: StepGraph, node: int) -> int | None:
    """The number that a node of the loop's condition or body stands for when the loop begins, if it is a constant."""
    value = constant_value(called.nodes[node])
    if value is None and node in called.arguments:
        outer, _ = graph.nodes[index].inputs[called.arguments.index(node)]
        value = constant_value(graph.nodes[outer])
    return int(value) if value is not None and value.size == 1 else None


def _step(graph: StepGraph, index: int, argument: int) -> int | None:
    """What the loop's body adds to the counter that is its argument number `argument`, if it is a constant."""
    body = graph.function(index, "body")
    update = body.nodes[body.fetches[argument][0]]
    while update.op == "Identity":
        update = body.nodes[update.inputs[0][0]]
    if update.op not in ("Add", "AddV2", "Sub"):
        return None
    added = [source for source, _ in update.inputs if source != body.arguments[argument]]
    return _value(graph, index, body, added[0]) if len(added) == 1 else None
