"""What TensorFlow's runtime computes once, when it takes a function, instead of in every step.

Grappler folds small constants. What it leaves for its size, such as the gradient of a mean, the runtime computes on the
CPU, and keeps as a constant on the device. Source of the rules: `constant_folding.cc` in
`tensorflow/core/common_runtime`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tensorflow.python.framework import op_def_registry

from tensorboard_plugin_memest.estimation.frames import topological
from tensorboard_plugin_memest.estimation.graph import ASKED, PASSING, Node, StepGraph
from tensorboard_plugin_memest.estimation.lowering import CALLS

# Ops that make a list of tensors in which nothing is yet.
_EMPTY_LISTS = {"EmptyTensorList", "TensorListReserve"}

# Larger results stay ops.
LARGEST = 10 * 2**20

_FOLDED = "__cf__"


def fold_constants(graph: StepGraph) -> None:
    """Puts constants in the places of what depends on nothing but constants.

    Nodes that nobody needs any more stay in the graph, and do nothing.
    """
    order = list(topological(graph))
    folded = _foldable(graph, order)
    wanted = [given for index, node in enumerate(graph.nodes) if index not in folded for given in node.inputs]
    constants: dict[tuple[int, int], tuple[int, int]] = {}
    for source, output in dict.fromkeys([*wanted, *graph.fetches]):
        made = graph.nodes[source]
        if source not in folded:
            continue
        if made.op == "Const" or not 0 < made.outputs[output].bytes <= LARGEST:
            continue
        constants[source, output] = (len(graph.nodes), 0)
        graph.nodes.append(
            Node(
                name=f"{made.name}/_{output}{_FOLDED}{len(constants) - 1}",
                op="Const",
                inputs=[],
                control_inputs=sorted(folded[source]),
                outputs=[made.outputs[output]],
                attributes={},
            )
        )
    if not constants:
        return
    for index, node in enumerate(graph.nodes):
        if index not in folded:
            node.inputs[:] = [constants.get(given, given) for given in node.inputs]
    graph.fetches[:] = [constants.get(fetch, fetch) for fetch in graph.fetches]
    _drop_unused(graph, [index for index in order if index in folded])


def is_folded(node: Node) -> bool:
    """Whether a node is a constant that the runtime computed."""
    return node.op == "Const" and _FOLDED in node.name


def is_made_once(graph: StepGraph, node: Node) -> bool:
    """Whether a node makes a list that begins alike in every step: that too is made once, and is there from then on."""
    if node.op not in _EMPTY_LISTS or node.control_inputs:
        return False
    return all(graph.nodes[source].op == "Const" for source, _ in node.inputs)


def _foldable(graph: StepGraph, order: Sequence[int]) -> dict[int, set[int]]:
    """The nodes that depend on constants alone, each with the nodes that its result has to wait for all the same."""
    found: dict[int, set[int]] = {}
    for index in order:
        node = graph.nodes[index]
        if ASKED in node.attributes or (node.op != "Const" and not _computes(graph, index, node)):
            continue
        if any(source not in found for source, _ in node.inputs):
            continue
        waits: set[int] = set()
        for source in _sources(node):
            waits |= found.get(source, {source})
        found[index] = waits
    return found


def _computes(graph: StepGraph, index: int, node: Node) -> bool:
    """Whether a node's results follow from its inputs and nothing else."""
    if not node.inputs or node.op in CALLS | PASSING or index in graph.held | graph.fed:
        return False
    definition = op_def_registry.get(node.op)
    if definition is None or definition.is_stateful:
        return False
    return all(output.dtype not in ("resource", "variant") for output in node.outputs)


def _drop_unused(graph: StepGraph, order: Sequence[int]) -> None:
    needed = Counter(source for source, _ in graph.fetches)
    for node in graph.nodes:
        needed.update(_sources(node))
    for index in reversed(order):
        node = graph.nodes[index]
        if not needed[index]:
            needed.subtract(_sources(node))
            graph.nodes[index] = replace(node, op="NoOp", inputs=[], control_inputs=[], outputs=[])


def _sources(node: Node) -> list[int]:
    return [*(source for source, _ in node.inputs), *node.control_inputs]
