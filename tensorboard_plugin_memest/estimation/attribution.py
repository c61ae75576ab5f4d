"""Whose each tensor of a step is, and what it is for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tensorboard_plugin_memest.estimation.frames import frames_of, topological
from tensorboard_plugin_memest.estimation.graph import PASSING, Node, Output, StepGraph
from tensorboard_plugin_memest.estimation.replicas import ALL_REDUCE
from tensorboard_plugin_memest.estimation.rules import source_in
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.trace import GRADIENT_SCOPE, Owner, Owners
from tensorboard_plugin_memest.estimation.variables import INPUT, OPTIMIZER, STEP, Variable
from tensorboard_plugin_memest.memory.category import Category

FORWARD = "forward"
BACKWARD = "backward"
UPDATE = "update"

# Ops that put a tensor into a list: what a loop stores there is for the backward pass, or is the loop's own output.
_STORING = {"TensorListPushBack", "TensorListSetItem"}

_FEEDS = {"IteratorGetNext", "Placeholder"}
_OPTIONAL_FEEDS = {"IteratorGetNextAsOptional", "OptionalGetValue"}


# What taking loops and conditionals apart puts between the name of one and that of what was inside of it.
_CALLER = re.compile(
    r"(?:Func/)?(.*)/(?:cond|body|then|else|branch\d+|enter|merge|exit|next_iteration|output)/_\d+(?:/|$)"
)


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
        called: for each node that calls a function which the runtime leaves where it is, its attribution.
    """

    def __init__(self, graph: StepGraph, owners: Owners, inside: Inside | None = None) -> None:
        self.graph = graph
        self._inside = inside
        self._readers: list[list[tuple[int, int, int]]] = [[] for _ in graph.nodes]  # (output, reader, its input)
        for index, node in enumerate(graph.nodes):
            for position, (source, output) in enumerate(node.inputs):
                self._readers[source].append((output, index, position))
        self._frames = frames_of(graph)
        self._gradient_calls = graph.gradient_calls()
        self._owner_of = self._find_owners(owners)
        self._sum_of = {
            added: index
            for index, node in enumerate(graph.nodes)
            if node.op == "DestroyTemporaryVariable"
            for added in node.control_inputs
            if graph.nodes[added].op == "AssignAdd"
        }
        self._split_of = self._find_splits()
        self._order = list(topological(graph))
        self.parts = self._find_parts()
        self._find_owners_of_sums()
        graphs = {index: graph.called(index) for index in range(len(graph.nodes))}
        self.called = {
            index: Attribution(called, owners, self._inside_of(index))
            for index, called in graphs.items()
            if called is not None
        }
        self._weights = self._find_weights()
        for index, called in self.called.items():
            weight = self._weight_of(index)
            called._inside = replace(self._inside_of(index), layer=self.layer_of(index), weight=weight)
        self._kept = self._find_kept()
        self._stored = {
            source
            for index, node in enumerate(graph.nodes)
            if (inside or self._frames[index]) and node.op in _STORING
            for source, _ in node.inputs[1:]
        }

    @cached_property
    def tags(self) -> list[list[Tag]]:
        """For each node, the tag of each of its outputs."""
        return [
            [self._tag(index, node, output) for output in range(len(node.outputs))]
            for index, node in enumerate(self.graph.nodes)
        ]

    def layer_of(self, index: int) -> str:
        """The layer that a node belongs to, or the part of the step."""
        weight = _only(set().union(*self._weights[index]))
        return weight.layer if weight and self.parts[index] == UPDATE else self._owner_of[index].layer

    def _weight_of(self, index: int) -> str | None:
        weight = _only(set().union(*self._weights[index]))
        return weight.weight if weight else self._inside.weight if self._inside else None

    def _inside_of(self, index: int) -> Inside:
        name = self.graph.nodes[index].name
        return Inside(
            layer=self._owner_of[index].layer,
            name=f"{self._inside.name}/{name}" if self._inside else name,
            part=self.parts[index],
            weight=None,
        )

    def _find_owners(self, owners: Owners) -> list[Owner]:
        found = [owners.find(node.name) for node in self.graph.nodes]
        for index, node in enumerate(self.graph.nodes):
            if found[index].layer != STEP:
                continue
            # A constant is there for whoever reads it.
            readers = {found[reader] for _, reader, _ in self._readers[index]} if node.op == "Const" else set()
            if not readers and GRADIENT_SCOPE in node.name:
                # A gradient whose name tells nothing reads what its forward op made.
                readers = {
                    found[source] for source, _ in node.inputs if GRADIENT_SCOPE not in self.graph.nodes[source].name
                } - {Owner(STEP)}
            if len(readers) == 1:
                found[index] = Owner(next(iter(readers)).layer)
            elif _caller(node.name):
                # What a loop or a branch does without a name of its own is its layer's.
                found[index] = owners.find(_caller(node.name))
            elif self._inside:
                found[index] = Owner(self._inside.layer)
        for index, forward in self._gradient_calls.items():
            # It has no name of its own either.
            if found[index].layer == STEP:
                found[index] = found[forward]
        return found

    def _find_parts(self) -> list[str]:
        parts = [self._inside.part if self._inside else FORWARD] * len(self.graph.nodes)
        for index in self._order:
            node = self.graph.nodes[index]
            owner = self._owner_of[index]
            if node.op in PASSING and self._frames[index]:
                # Its name may tell of what goes through it, too.
                parts[index] = BACKWARD if GRADIENT_SCOPE in self._frames[index] else parts[node.inputs[0][0]]
            elif owner.is_update or (owner.layer == STEP and self._assigned_weight(node) is not None):
                parts[index] = UPDATE
            elif node.op == "Const":
                # Equal constants of both passes are one after optimization, whichever name it kept.
                continue
            elif (
                GRADIENT_SCOPE in node.name
                or index in self._gradient_calls
                or (
                    # Sums of gradients carry no scope. What a layer made while it was called is never one.
                    (self._inside or owner.layer == STEP)
                    and any(parts[source] == BACKWARD for source, _ in node.inputs)
                )
            ):
                parts[index] = BACKWARD
        # Sums of many gradients that Grappler made a variable: what leads to it is a gradient as much as its parts.
        for added, total in self._sum_of.items():
            if parts[added] == BACKWARD:
                for index in self._total(total):
                    parts[index] = BACKWARD
        return parts

    def _find_owners_of_sums(self) -> None:
        """Gradients that are summed, and zeros like a tensor: both without a name that tells whose they are."""
        for index in self._order:
            node = self.graph.nodes[index]
            if self._owner_of[index].layer != STEP or not (self.parts[index] == BACKWARD or node.op == "ZerosLike"):
                continue
            added = [self.graph.nodes[one] for one, total in self._sum_of.items() if total == index]
            sources = [one.inputs[1][0] for one in added] or [source for source, _ in node.inputs]
            owners = {self._owner_of[source].layer for source in sources} - {STEP}
            if len(owners) == 1:
                for one in self._total(index) if added else (index,):
                    self._owner_of[one] = Owner(next(iter(owners)))

    def _total(self, index: int) -> tuple[int, ...]:
        """What a sum is in that Grappler made a variable, from the variable's begin to its end at `index`."""
        start, _ = self.graph.nodes[index].inputs[0]
        return index, start, *(source for source, _ in self.graph.nodes[start].inputs)

    def _assigned_weight(self, node: Node) -> Variable | None:
        """The variable of a weight, itself or a slot, that a node assigns to."""
        if not node.op.startswith(("Assign", "ResourceScatter")) or not node.inputs:
            return None
        variable = self.graph.variable_of.get(node.inputs[0][0])
        return variable if variable is not None and variable.weight is not None else None

    def _find_weights(self) -> list[list[set[Variable]]]:
        """The weights that each output of a node of the update, and each gradient handed to it, is there for.

        What the update does with a variable is for its weight; what leads to that, directly or through ops that change
        nothing of its kind, is too.
        """
        weights = {variable.name: variable for variable in self.graph.variable_of.values()}
        found: list[list[set[Variable]]] = [[set() for _ in node.outputs] for node in self.graph.nodes]
        arguments = set(self.graph.arguments)
        # What leads on to the next iteration of a loop is known once its begin is.
        for _ in range(2 if any(self._frames) else 1):
            self._add_weights(found, weights, arguments)
        return found

    def _add_weights(
        self, found: list[list[set[Variable]]], weights: Mapping[str, Variable], arguments: Collection[int]
    ) -> None:
        for index in reversed(self._order):
            node = self.graph.nodes[index]
            own = self.graph.variable_of.get(node.inputs[0][0]) if node.inputs else None
            if own is not None and own.weight is not None and self.parts[index] == UPDATE:
                # An op that only assigns has no output to be told apart by.
                found[index] = [{weights.get(own.weight, own)}] * max(1, len(node.outputs))
            elif index in self._sum_of:
                found[index] = [found[self._sum_of[index]][0]]
            elif node.op == ALL_REDUCE or index in self._split_of:
                continue
            elif self.parts[index] != FORWARD or index in arguments:
                for output, reader, position in self._readers[index]:
                    found[index][output] |= self._wanted_by(reader, position, node.outputs[output], found)

    def _wanted_by(
        self, reader: int, position: int, made: Output, found: Sequence[Sequence[set[Variable]]]
    ) -> set[Variable]:
        """The weights for whose sake a reader wants its input number `position`."""
        node = self.graph.nodes[reader]
        if node.op == "IdentityN":
            return found[reader][position]
        if reader in self._split_of:
            # What goes into the sum over all replicas comes out of it in the same place; the last input is the axis.
            summed = found[self._split_of[reader]]
            return summed[position] if position < len(summed) else set()
        if reader in self.called:
            return self.called[reader]._wanted_argument(position)
        if self.parts[reader] == UPDATE or self._hands_on(reader, made):
            return set().union(*found[reader])
        return set()

    def _find_splits(self) -> dict[int, int]:
        """For each concatenation of gradients that are summed over replicas, the op that splits the sum up again."""
        found = {}
        for index, node in enumerate(self.graph.nodes):
            if node.op == ALL_REDUCE:
                joined = node.inputs[0][0]
                for _, reader, _ in self._readers[index]:
                    if self.graph.nodes[reader].op in ("SplitV", "Split"):
                        found[joined] = reader
        return found

    def _wanted_argument(self, argument: int) -> set[Variable]:
        outputs = self._weights[self.graph.arguments[argument]]
        return outputs[0] if outputs else set()

    def _hands_on(self, reader: int, made: Output) -> bool:
        """Whether a gradient that a node reads is one still in what it makes: scaled, say, or added to another."""
        node = self.graph.nodes[reader]
        if self._passes_on(reader):
            return True
        if self.parts[reader] != BACKWARD or not node.outputs or node.outputs[0].shape != made.shape:
            return False
        return bool(source_in(self.graph, node, 0).reuses)

    def _find_kept(self) -> list[bool]:
        """Whether the backward pass reads a forward op's result, directly or through ops that only rename it."""
        kept = [False] * len(self.graph.nodes)
        for index in reversed(self._order):
            kept[index] = any(
                self.parts[reader] == BACKWARD or (self._passes_on(reader) and kept[reader])
                for _, reader, _ in self._readers[index]
            )
        return kept

    def _passes_on(self, index: int) -> bool:
        node = self.graph.nodes[index]
        if not node.inputs or not node.outputs:
            return False
        return source_in(self.graph, node, 0).alias_of is not None

    def _tag(self, index: int, node: Node, output: int) -> Tag:
        made = node.outputs[output]
        layer = self._owner_of[index].layer
        weight = _only(self._weights[index][output])
        name, variable = node.name, None
        if self._inside:
            name, variable = f"{self._inside.name}/{name}", self._inside.weight
        if node.op == "Const":
            category, role = Category.CONSTANTS, "constant"
            layer = weight.layer if weight else layer
        elif index in self.graph.held:
            category, role = Category.CONSTANTS, "tensor kept by the layer"
        elif node.op in _OPTIONAL_FEEDS or (node.op in _FEEDS and not self._inside):
            category, role, layer = Category.INPUTS, "batch", INPUT
        elif node.op == ALL_REDUCE or index in self._split_of:
            category, role, layer = Category.GRADIENTS, "all-reduce buffer", OPTIMIZER
        elif index in self._split_of.values():
            category, role = Category.GRADIENTS, "summed gradient"
            if weight:
                layer, variable = weight.layer, weight.weight
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
        # A list of tensors has no memory: what is made for it is one of its elements, of whatever shape.
        shape, dtype = (None, None) if made.dtype == "variant" else (made.shape, made.dtype)
        return Tag(layer or STEP, name, category, role, variable, shape, dtype)


def _caller(name: str) -> str:
    """The name of the loop, the conditional or the call that a node was inside of before it was taken apart."""
    found = _CALLER.match(name)
    return found.group(1) if found else ""


def _only(found: set[Variable]) -> Variable | None:
    return next(iter(found)) if len(found) == 1 else None
