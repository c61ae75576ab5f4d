"""Whose each tensor of a step is, and what it is for."""

from __future__ import annotations

from collections.abc import Iterator

from tensorboard_plugin_memest.estimation.graph import Node, StepGraph
from tensorboard_plugin_memest.estimation.rules import source_of
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.trace import GRADIENT_SCOPE, Owners
from tensorboard_plugin_memest.estimation.variables import INPUT, OPTIMIZER, STEP, Variable
from tensorboard_plugin_memest.memory.category import Category

FORWARD = "forward"
BACKWARD = "backward"
UPDATE = "update"

_FEEDS = {"IteratorGetNext", "IteratorGetNextAsOptional", "OptionalGetValue", "Placeholder", "_Arg"}


class Attribution:
    """Tags for every output of a step's graph.

    Attributes:
        parts: for each node, which part of the step it belongs to: forward, backward or update.
        tags: for each node, the tag of each of its outputs.
    """

    def __init__(self, graph: StepGraph, owners: Owners) -> None:
        self._graph = graph
        self._owners = owners
        self._owner_of = [owners.find(node.name) for node in graph.nodes]
        self._consumers: list[list[int]] = [[] for _ in graph.nodes]
        for index, node in enumerate(graph.nodes):
            for source, _ in node.inputs:
                self._consumers[source].append(index)
        self._order = list(_topological(graph))
        self.parts = self._find_parts()
        self._weights = self._find_weights()
        self._kept = self._find_kept()
        self.tags = [
            [self._tag(index, node, output) for output in range(len(node.outputs))]
            for index, node in enumerate(graph.nodes)
        ]

    def layer_of(self, index: int) -> str:
        """The layer that a node belongs to, or the part of the step."""
        weight = self._weights[index]
        return weight.layer if weight and self.parts[index] == UPDATE else self._owner_of[index].layer

    def weight_of(self, index: int) -> str | None:
        """The weight that a node of the update is there for; None for other nodes."""
        weight = self._weights[index]
        return weight.weight if weight else None

    def _find_parts(self) -> list[str]:
        parts = [FORWARD] * len(self._graph.nodes)
        for index in self._order:
            node = self._graph.nodes[index]
            owner = self._owner_of[index]
            if owner.is_update:
                parts[index] = UPDATE
            elif node.op == "Const":
                # Equal constants of both passes are one after optimization, whichever name it kept.
                continue
            elif GRADIENT_SCOPE in node.name or (
                # Sums of gradients carry no scope. What a layer made while it was called is never one.
                owner.layer == STEP and any(parts[source] == BACKWARD for source, _ in node.inputs)
            ):
                parts[index] = BACKWARD
        return parts

    def _find_weights(self) -> list[Variable | None]:
        """The weight that each op of the update, and each gradient handed to it, is there for.

        An assignment names its weight; what leads to assignments of one weight only belongs to that weight too.
        """
        found: list[set[Variable]] = [set() for _ in self._graph.nodes]
        weights = {variable.name: variable for variable in self._graph.variable_of.values()}
        for index in reversed(self._order):
            node = self._graph.nodes[index]
            own = self._graph.variable_of.get(node.inputs[0][0]) if node.inputs else None
            if own is not None and own.weight is not None and self.parts[index] == UPDATE:
                found[index] = {weights.get(own.weight, own)}
            elif self.parts[index] in (UPDATE, BACKWARD):
                for consumer in self._consumers[index]:
                    if self.parts[consumer] == UPDATE or self._passes_on(consumer):
                        found[index] |= found[consumer]
        return [next(iter(own)) if len(own) == 1 else None for own in found]

    def _find_kept(self) -> list[bool]:
        """Whether the backward pass reads a forward op's result, directly or through ops that only rename it."""
        kept = [False] * len(self._graph.nodes)
        for index in reversed(self._order):
            kept[index] = any(
                self.parts[consumer] == BACKWARD or (self._passes_on(consumer) and kept[consumer])
                for consumer in self._consumers[index]
            )
        return kept

    def _passes_on(self, index: int) -> bool:
        node = self._graph.nodes[index]
        if not node.inputs or not node.outputs:
            return False
        given = [self._graph.nodes[source].outputs[output] for source, output in node.inputs]
        return source_of(node, 0, given).alias_of is not None

    def _tag(self, index: int, node: Node, output: int) -> Tag:
        made = node.outputs[output]
        layer = self._owner_of[index].layer
        weight = self._weights[index]
        variable = None
        if node.op == "Const":
            category, role = Category.CONSTANTS, "constant"
        elif index in self._graph.held:
            category, role = Category.CONSTANTS, "tensor kept by the layer"
        elif node.op in _FEEDS:
            category, role, layer = Category.INPUTS, "batch", INPUT
        elif self.parts[index] == UPDATE:
            category, role = Category.TEMPORARIES, "update temporary"
            layer = weight.layer if weight else OPTIMIZER
            variable = weight.weight if weight else None
        elif self.parts[index] == BACKWARD and weight is not None:
            category, role = Category.GRADIENTS, "gradient"
            layer, variable = weight.layer, weight.weight
        elif self.parts[index] == BACKWARD:
            category, role = Category.TEMPORARIES, f"{node.op} output, backward"
        elif self._kept[index]:
            category, role = Category.ACTIVATIONS, f"{node.op} output"
        else:
            category, role = Category.TEMPORARIES, f"{node.op} output"
        return Tag(layer or STEP, node.name, category, role, variable, made.shape, made.dtype)


def _topological(graph: StepGraph) -> Iterator[int]:
    pending = [len(node.inputs) + len(node.control_inputs) for node in graph.nodes]
    followers: list[list[int]] = [[] for _ in graph.nodes]
    for index, node in enumerate(graph.nodes):
        for source, _ in node.inputs:
            followers[source].append(index)
        for source in node.control_inputs:
            followers[source].append(index)
    ready = [index for index, count in enumerate(pending) if count == 0]
    while ready:
        index = ready.pop()
        yield index
        for follower in followers[index]:
            pending[follower] -= 1
            if pending[follower] == 0:
                ready.append(follower)
