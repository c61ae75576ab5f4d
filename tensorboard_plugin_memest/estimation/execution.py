"""Runs a step's graph on paper: which buffer exists when.

The result is a list of allocations and releases in order; nothing here knows the allocator's chunks, layers or
categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.graph import Node, Output, StepGraph
from tensorboard_plugin_memest.estimation.order import Order
from tensorboard_plugin_memest.estimation.rules import OWN, can_take_over, source_of
from tensorboard_plugin_memest.estimation.tag import Tag, variable_tag
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.memory.category import Category

_UPDATES = {"AssignAddVariableOp", "AssignSubVariableOp"}


@dataclass
class VariableStore:
    """The buffers that variables hold between steps; changes when an update has to copy."""

    buffers: dict[Variable, Buffer] = field(default_factory=dict)
    copied_on_read: set[Variable] = field(default_factory=set)


class Execution:
    """One run of a step's graph.

    Args:
        graph: the optimized graph.
        tags: for each node, what each of its outputs is.
        order: decides what runs next; used once.
        store: the variables' buffers; changed by the run.
        constants: the buffers of the graph's constants, by node, which outlive the step.
    """

    def __init__(
        self,
        graph: StepGraph,
        tags: Sequence[Sequence[Tag]],
        order: Order,
        store: VariableStore,
        constants: dict[int, Buffer],
    ) -> None:
        self._graph = graph
        self._tags = tags
        self._order = order
        self._store = store
        self._constants = constants
        self._consumers, self._followers, self._pending = _edges(graph)
        self._values: dict[tuple[int, int], Buffer | None] = {}
        self.events: list[Event] = []
        self._finished = 0

    def run(self) -> list[Event]:
        """Runs every node.

        Returns:
            What happened to memory, in order.

        Raises:
            RuntimeError: some nodes never became ready, so the graph has a cycle.
        """
        self._order.run(self)
        if self._finished != len(self._graph.nodes):
            raise RuntimeError(f"{self._finished} of {len(self._graph.nodes)} ops became ready.")
        for fetched in self._graph.fetches:
            self._release(self._values.get(fetched), fetched[0])
        return self.events

    @property
    def roots(self) -> list[int]:
        """The nodes that wait for nothing, in the graph's order."""
        return [index for index, count in enumerate(self._pending) if count == 0]

    def start(self, index: int) -> None:
        """Gives a node's outputs their memory."""
        node = self._graph.nodes[index]
        inputs = [self._values.get(source) for source in node.inputs]
        if index in self._constants:
            outputs: list[Buffer | None] = [self._constants[index]]
        elif index in self._graph.variable_of:
            outputs = [None]
        elif node.op == "ReadVariableOp":
            outputs = [self._read(index, node)]
        else:
            self._assign(index, node, inputs)
            outputs = self._outputs(index, node, inputs)
        for output, buffer in enumerate(outputs):
            if buffer is not None:
                # Held by the running kernel until its readers are known.
                buffer.references += 1
                self._values[index, output] = buffer

    def finish(self, index: int) -> list[int]:
        """Hands a node's outputs to their readers and releases its inputs.

        Returns:
            The nodes that wait for nothing any more, in the order in which they became ready.
        """
        node = self._graph.nodes[index]
        for output in range(len(node.outputs)):
            buffer = self._values.get((index, output))
            if buffer is not None:
                buffer.references += self._consumers.get((index, output), 0)
                self._release(buffer, index)
        for source in node.inputs:
            self._release(self._values.get(source), index)
        self._finished += 1
        ready = []
        for follower in self._followers[index]:
            self._pending[follower] -= 1
            if self._pending[follower] == 0:
                ready.append(follower)
        return ready

    def _outputs(self, index: int, node: Node, inputs: Sequence[Buffer | None]) -> list[Buffer | None]:
        given = [self._graph.nodes[source].outputs[output] for source, output in node.inputs]
        taken: set[int] = set()
        outputs: list[Buffer | None] = []
        for number, wanted in enumerate(node.outputs):
            source = source_of(node, number, given) if given else OWN
            if source.alias_of is not None:
                outputs.append(inputs[source.alias_of])
                continue
            outputs.append(
                self._take_over(index, number, wanted, source.reuses, given, inputs, taken)
                or self._allocate(index, number, wanted)
            )
        return outputs

    def _take_over(
        self,
        index: int,
        number: int,
        wanted: Output,
        candidates: Sequence[int],
        given: Sequence[Output],
        inputs: Sequence[Buffer | None],
        taken: set[int],
    ) -> Buffer | None:
        for candidate in candidates:
            buffer = inputs[candidate]
            # One reference is this node's own reading; a second means somebody else still needs the value.
            if buffer is None or candidate in taken or buffer.references != 1:
                continue
            if can_take_over(given[candidate], wanted):
                taken.add(candidate)
                self._emit(RELABEL, buffer, index, self._tags[index][number])
                return buffer
        return None

    def _read(self, index: int, node: Node) -> Buffer | None:
        variable = self._graph.variable_of.get(node.inputs[0][0])
        if variable is None or variable in self._store.copied_on_read:
            return self._allocate(index, 0, node.outputs[0])
        return self._store.buffers[variable]

    def _assign(self, index: int, node: Node, inputs: Sequence[Buffer | None]) -> None:
        variable = self._graph.variable_of.get(node.inputs[0][0]) if node.inputs else None
        if variable is None:
            return
        held = self._store.buffers[variable]
        if node.op == "AssignVariableOp":
            value = inputs[1]
            if value is not None and value.references == 1 and not value.is_variable:
                # The value's memory becomes the variable's; the old value goes as soon as nobody reads it.
                value.references += 1
                self._hold(index, variable, value)
                self._release(held, index)
            elif held.references != 1:
                self._replace(index, variable, held)
        elif node.op in _UPDATES:
            if held.references != 1:
                # Somebody still reads the old value, so it is copied before it is changed.
                self._replace(index, variable, held)
        elif node.op.startswith("ResourceScatter"):
            self._store.copied_on_read.add(variable)
            if held.references != 1:
                self._replace(index, variable, held)

    def _replace(self, index: int, variable: Variable, held: Buffer) -> None:
        copy = Buffer(variable.bytes, references=1)
        self._emit(ALLOCATE, copy, index, variable_tag(variable))
        self._hold(index, variable, copy)
        # What is still read of the old value is no weight any more.
        held.is_variable = False
        old = replace(variable_tag(variable), category=Category.TEMPORARIES, role="old value, still read")
        self._emit(RELABEL, held, index, old)
        self._release(held, index)

    def _hold(self, index: int, variable: Variable, buffer: Buffer) -> None:
        buffer.is_variable = True
        self._store.buffers[variable] = buffer
        self._emit(RELABEL, buffer, index, variable_tag(variable))

    def _allocate(self, index: int, number: int, wanted: Output) -> Buffer | None:
        if wanted.bytes == 0:
            return None
        buffer = Buffer(wanted.bytes)
        self._emit(ALLOCATE, buffer, index, self._tags[index][number])
        return buffer

    def _emit(self, kind: str, buffer: Buffer, index: int, tag: Tag | None = None) -> None:
        self.events.append(Event(kind, buffer, self._graph.nodes[index].name, tag))

    def _release(self, buffer: Buffer | None, index: int) -> None:
        if buffer is None:
            return
        buffer.references -= 1
        if buffer.references == 0:
            self._free(buffer, index)

    def _free(self, buffer: Buffer, index: int) -> None:
        self._emit(FREE, buffer, index)


def _edges(graph: StepGraph) -> tuple[dict[tuple[int, int], int], list[list[int]], list[int]]:
    """How often each output is read, which nodes follow each node, and how many edges each node waits for."""
    consumers: dict[tuple[int, int], int] = {}
    data: list[list[int]] = [[] for _ in graph.nodes]
    control: list[list[int]] = [[] for _ in graph.nodes]
    pending = [0] * len(graph.nodes)
    for index, node in enumerate(graph.nodes):
        for source in node.inputs:
            consumers[source] = consumers.get(source, 0) + 1
            data[source[0]].append(index)
            pending[index] += 1
        for before in node.control_inputs:
            control[before].append(index)
            pending[index] += 1
    for fetched in graph.fetches:
        consumers[fetched] = consumers.get(fetched, 0) + 1
    return consumers, [followers + later for followers, later in zip(data, control, strict=True)], pending
