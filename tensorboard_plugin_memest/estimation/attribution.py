"""Whose each tensor of a step is, and what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorboard_plugin_memest.estimation.graph import Node, StepGraph
from tensorboard_plugin_memest.estimation.rules import source_of
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.trace import GRADIENT_SCOPE, Owner, Owners
from tensorboard_plugin_memest.estimation.variables import INPUT, OPTIMIZER, STEP, Variable
from tensorboard_plugin_memest.memory.category import Category

FORWARD = "forward"
BACKWARD = "backward"
UPDATE = "update"

# Ops that put a tensor into a list: what a loop stores there is for the backward pass, or is the loop's own output.
_STORING = {"TensorListPushBack", "TensorListSetItem"}

_FEEDS = {"IteratorGetNext", "IteratorGetNextAsOptional", "OptionalGetValue", "Placeholder", "_Arg"}


@dataclass(frozen=True)
class Inside:
    """What the nodes of a called function inherit from the node that calls it, where they do not know better.

    Attributes:
        layer: whose the call is.
        name: its name.
        part: the part of the step that it belongs to.
        weight: the weight that it is there for.
    """

    layer: str
    name: str
    part: str
    weight: str | None


class Attribution:
    """Tags for every output of a step's graph, or of the graph of a function that it calls.

    Attributes:
        parts: for each node, which part of the step it belongs to: forward, backward or update.
        tags: for each node, the tag of each of its outputs.
    """

    def __init__(self, graph: StepGraph, owners: Owners, inside: Inside | None = None) -> None:
        self._graph = graph
        self._owners = owners
        self._inside = inside
        self._owner_of = [self._find_owner(node) for node in graph.nodes]
        self._consumers: list[list[int]] = [[] for _ in graph.nodes]
        for index, node in enumerate(graph.nodes):
            for source, _ in node.inputs:
                self._consumers[source].append(index)
        self._order = list(_topological(graph))
        self.parts = self._find_parts()
        self._weights = self._find_weights()
        self._kept = self._find_kept()
        self._stored = {
            source for node in graph.nodes if inside and node.op in _STORING for source, _ in node.inputs[1:]
        }
        self.tags = [
            [self._tag(index, node, output) for output in range(len(node.outputs))]
            for index, node in enumerate(graph.nodes)
        ]

    def layer_of(self, index: int) -> str:
        """The layer that a node belongs to, or the part of the step."""
        weight = self._weights[index]
        return weight.layer if weight and self.parts[index] == UPDATE else self._owner_of[index].layer

    def of_called(self, index: int, called: StepGraph) -> Attribution:
        """The attribution of a function's graph that node `index` calls."""
        weight = self._weights[index]
        name = self._graph.nodes[index].name
        return Attribution(
            called,
            self._owners,
            Inside(
                layer=self.layer_of(index),
                name=f"{self._inside.name}/{name}" if self._inside else name,
                part=self.parts[index],
                weight=weight.weight if weight else self._inside.weight if self._inside else None,
            ),
        )

    def _find_owner(self, node: Node) -> Owner:
        owner = self._owners.find(node.name)
        return Owner(self._inside.layer) if self._inside and owner.layer == STEP else owner

    def _find_parts(self) -> list[str]:
        parts = [self._inside.part if self._inside else FORWARD] * len(self._graph.nodes)
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
                (self._inside or owner.layer == STEP) and any(parts[source] == BACKWARD for source, _ in node.inputs)
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
        name, variable = node.name, None
        if self._inside:
            name, variable = f"{self._inside.name}/{name}", self._inside.weight
        if node.op == "Const":
            category, role = Category.CONSTANTS, "constant"
        elif index in self._graph.held:
            category, role = Category.CONSTANTS, "tensor kept by the layer"
        elif node.op in _FEEDS and not self._inside:
            category, role, layer = Category.INPUTS, "batch", INPUT
        elif self.parts[index] == UPDATE:
            category, role = Category.TEMPORARIES, "update temporary"
            if weight:
                layer, variable = weight.layer, weight.weight
            elif not self._inside:
                layer = OPTIMIZER
        elif self.parts[index] == BACKWARD and weight is not None:
            category, role = Category.GRADIENTS, "gradient"
            layer, variable = weight.layer, weight.weight
        elif self.parts[index] == BACKWARD:
            category, role = Category.TEMPORARIES, f"{node.op} output, backward"
        elif index in self._stored:
            category, role = Category.ACTIVATIONS, f"{node.op} output, one an iteration"
        elif self._kept[index]:
            category, role = Category.ACTIVATIONS, f"{node.op} output"
        else:
            category, role = Category.TEMPORARIES, f"{node.op} output"
        return Tag(layer or STEP, name, category, role, variable, made.shape, made.dtype)


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
