"""Runs a step's graph on paper: which buffer exists when.

The result is a list of allocations and releases in order; nothing here knows the allocator's chunks, layers or
categories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tensorboard_plugin_memest.estimation.cost import seconds
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event, TensorList
from tensorboard_plugin_memest.estimation.executor_graph import Edges, edges_of
from tensorboard_plugin_memest.estimation.graph import CONDITIONALS, LOOPS, Node, Output, StepGraph
from tensorboard_plugin_memest.estimation.lists import LIST_OPS, list_result
from tensorboard_plugin_memest.estimation.order import Order
from tensorboard_plugin_memest.estimation.rules import OWN, Source, can_take_over, source_of
from tensorboard_plugin_memest.estimation.tag import Tag, variable_tag, workspace_tag
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.estimation.workspace.kernel import Workspace
from tensorboard_plugin_memest.memory.category import Category

_UPDATES = {"AssignAddVariableOp", "AssignSubVariableOp"}


@dataclass
class VariableStore:
    """The buffers that variables hold between steps, some of them together; changes when an update has to copy."""

    buffers: dict[Variable, Buffer] = field(default_factory=dict)
    copied_on_read: set[Variable] = field(default_factory=set)


@dataclass(frozen=True)
class Plan:
    """What does not change from run to run of a graph.

    Attributes:
        readers: how often each output is read; being fetched counts.
        edges: what leads where, in the order of the graph's nodes.
        waits_for: for each node, how many edges lead to it.
        sources: for each node, where each of its outputs comes from; only inputs that are fit are named.
    """

    readers: dict[tuple[int, int], int]
    edges: Edges
    waits_for: list[int]
    sources: list[list[Source]]


@dataclass(frozen=True)
class Loop:
    """How a loop runs.

    Attributes:
        count: how often.
        at_once: how many iterations may be under way at a time.
        deciding: positions of the arguments that its condition looks at.
    """

    count: int
    at_once: int = 1
    deciding: frozenset[int] = frozenset()


@dataclass
class Program:
    """A graph, what its tensors are, and what its kernels keep; with those of the functions it calls.

    Attributes:
        graph: the graph.
        tags: for each node, what each of its outputs is.
        constants: the buffers of the graph's constants, by node, which outlive the step.
        called: for a node that calls functions, their programs: a loop's body; the branches of a conditional.
        counts: for a loop, how often it runs.
        workspaces: what the kernels of some nodes allocate for themselves while they run.
    """

    graph: StepGraph
    tags: Sequence[Sequence[Tag]]
    constants: dict[int, Buffer] = field(default_factory=dict)
    called: dict[int, list[Program]] = field(default_factory=dict)
    loops: dict[int, Loop] = field(default_factory=dict)
    workspaces: Mapping[int, Workspace] = field(default_factory=dict)

    @cached_property
    def plan(self) -> Plan:
        """What every run of the graph has in common."""
        return _plan(self.graph)

    def constant_events(self) -> list[Event]:
        """What outlives a step comes to life, once: constants, of called functions too, what layers hold, what is fed.

        A fed batch is replaced by the next one, but in a loop there always is one.
        """
        outside = self.graph.held | self.graph.fed
        events = []
        for index, node in enumerate(self.graph.nodes):
            if (node.op == "Const" or index in outside) and node.outputs[0].bytes:
                self.constants[index] = Buffer(node.outputs[0].bytes, references=1, is_resident=True)
                events.append(Event(ALLOCATE, self.constants[index], node.name, self.tags[index][0]))
        for programs in self.called.values():
            for program in programs:
                events += program.constant_events()
        return events

    @cached_property
    def ops(self) -> int:
        """How many ops one run runs, those of functions that it calls included, and of loops each time."""
        called = sum(
            (self.loops[index].count if index in self.loops else 1) * max(program.ops for program in programs)
            for index, programs in self.called.items()
        )
        return len(self.graph.nodes) + called

    @cached_property
    def weight(self) -> int:
        """Bytes that one run makes, nested ones included: which of two branches costs more."""
        own = sum(output.bytes for node in self.graph.nodes for output in node.outputs)
        return own + sum(max(program.weight for program in programs) for programs in self.called.values())


class Execution:
    """One run of a step's graph.

    Args:
        program: what runs.
        order: decides what runs next; used once.
        store: the variables' buffers; changed by the run.
        edges: what leads where in the executor's graph, if that is not in the order of the graph's nodes.
    """

    def __init__(
        self,
        program: Program,
        order: Order,
        store: VariableStore,
        *,
        edges: Edges | None = None,
        events: list[Event] | None = None,
        caller: str | None = None,
        arguments: Sequence[Buffer | None] = (),
        iteration: int = 0,
        hands_over: bool = False,
    ) -> None:
        self._program = program
        self._graph = program.graph
        self._order = order
        self._store = store
        self._caller = caller
        self._arguments = dict(zip(program.graph.arguments, arguments, strict=True)) if arguments else {}
        self._iteration = iteration
        self._hands_over = hands_over
        self._plan = program.plan
        self._edges = edges or program.plan.edges
        self._pending = list(self._plan.waits_for)
        self._values: dict[tuple[int, int], Buffer | None] = {}
        self._dropped: dict[int, tuple[Buffer | None, ...]] = {}
        self._scratch: dict[int, list[Buffer]] = {}
        self._finished = 0
        self.events: list[Event] = [] if events is None else events

    def run(self) -> list[Event]:
        """Runs every node.

        Returns:
            What happened to memory, in order.

        Raises:
            RuntimeError: some nodes never became ready, so the graph has a cycle.
        """
        for fetched in self.call():
            self._release(fetched, len(self._graph.nodes) - 1)
        return self.events

    def call(self) -> list[Buffer | None]:
        """Runs every node and returns what the graph returns, each held once for the caller."""
        self._order.run(self)
        if not self.is_done:
            raise RuntimeError(f"{self._finished} of {len(self._graph.nodes)} ops became ready.")
        return [self._values.get(fetched) for fetched in self._graph.fetches]

    @property
    def is_done(self) -> bool:
        """Whether every node has run."""
        return self._finished == len(self._graph.nodes)

    def give(self, position: int, value: Buffer | None) -> None:
        """Hands over an argument that was not there in the beginning; its node has not started yet."""
        self._arguments[self._graph.arguments[position]] = value

    def value(self, fetched: tuple[int, int]) -> Buffer | None:
        """What an output of a node that has run holds."""
        return self._values.get(fetched)

    @property
    def roots(self) -> list[int]:
        """The nodes that wait for nothing, in the order in which they are started."""
        return self._edges.roots

    def start(self, index: int) -> None:
        """Gives a node's outputs their memory."""
        node = self._graph.nodes[index]
        inputs = [self._values.get(source) for source in node.inputs]
        if index in self._arguments:
            outputs: list[Buffer | None] = [self._arguments[index]]
        elif index in self._program.constants:
            outputs = [self._program.constants[index]]
        elif index in self._graph.variable_of:
            outputs = [None]
        elif node.op == "ReadVariableOp":
            outputs = [self._read(index, node)]
        elif index in self._program.called:
            for output, value in enumerate(self._call(index, inputs)):
                self._values[index, output] = value
                if value is not None and not value.is_resident and not isinstance(value, TensorList):
                    self._emit(RELABEL, value, index, self._program.tags[index][output])
            return
        else:
            self._assign(index, node, inputs)
            workspace = self._program.workspaces.get(index)
            if workspace:
                taken = workspace.taken_over
                spares = taken is not None and _is_free(inputs[taken])
                self._scratch[index] = self._borrow(index, workspace.before[spares:])
            outputs = self._outputs(index, node, inputs)
            if workspace:
                self._scratch[index] += self._borrow(index, workspace.after)
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
        for scratch in self._scratch.pop(index, ()):
            self._free(scratch, index)
        values, readers = self._values, self._plan.readers
        for output in range(len(node.outputs)):
            buffer = values.get((index, output))
            if buffer is not None:
                # The kernel's own hold goes.
                buffer.references += readers.get((index, output), 0) - 1
                if buffer.references == 0:
                    self._free(buffer, index)
        if self._hands_over and index in self._arguments:
            # The caller does not hold it any more: whoever reads it last frees it.
            self._release(self._arguments[index], index)
        for source in self._kept_inputs(index, node):
            buffer = values.get(source)
            if buffer is not None:
                buffer.references -= 1
                if buffer.references == 0:
                    self._free(buffer, index)
        # What a list gave up goes once its new reader, if any, holds it.
        for element in self._dropped.pop(index, ()):
            self._release(element, index)
        self._finished += 1
        ready, pending = [], self._pending
        for follower in self._edges.followers[index]:
            pending[follower] -= 1
            if pending[follower] == 0:
                ready.append(follower)
        return ready

    def _kept_inputs(self, index: int, node: Node) -> list[tuple[int, int]]:
        """The inputs that a node has not handed over to a function: of a loop none, of a conditional the condition."""
        if index not in self._program.called or node.op not in LOOPS | CONDITIONALS:
            return node.inputs
        return [] if node.op in LOOPS else node.inputs[:1]

    def _call(self, index: int, inputs: Sequence[Buffer | None]) -> list[Buffer | None]:
        """Runs the functions that a node calls; each value comes back held once.

        The runtime takes loops and conditionals apart, so that the node itself holds nothing that it hands over.
        """
        programs = self._program.called[index]
        node = self._graph.nodes[index]
        if node.op not in LOOPS:
            # Which branch is taken is decided in the run; the one that makes more memory is the one to reckon with.
            program = max(programs, key=lambda program: program.weight)
            is_conditional = node.op in CONDITIONALS
            arguments = inputs[1:] if is_conditional else inputs
            return self._run_function(program, index, arguments, hands_over=is_conditional)
        return self._run_loop(index, programs[0], inputs)

    def _run_loop(self, index: int, program: Program, inputs: Sequence[Buffer | None]) -> list[Buffer | None]:
        size = len(program.graph.nodes)
        order = self._inside(program, size)

        def begin(iteration: int) -> Execution:
            nothing = [None] * len(inputs)
            return self._called(program, order, index, nothing, iteration=iteration, hands_over=True)

        iterations = Iterations(program.graph, self._program.loops[index], inputs, begin)
        order.run(iterations)
        return iterations.results

    def _run_function(
        self, program: Program, index: int, arguments: Sequence[Buffer | None], *, hands_over: bool
    ) -> list[Buffer | None]:
        order = self._inside(program, len(program.graph.nodes))
        return self._called(program, order, index, arguments, hands_over=hands_over).call()

    def _inside(self, program: Program, size: int) -> Order:
        """The order of a function's nodes, or those of many runs of it, `size` numbers apart."""
        graph = program.graph
        return self._order.inside(
            lambda number: graph.nodes[number % size].op, lambda number: seconds(graph, number % size)
        )

    def _called(
        self,
        program: Program,
        order: Order,
        index: int,
        arguments: Sequence[Buffer | None],
        *,
        iteration: int = 0,
        hands_over: bool,
    ) -> Execution:
        return Execution(
            program,
            order,
            self._store,
            events=self.events,
            caller=self._caller or self._graph.nodes[index].name,
            arguments=arguments,
            iteration=iteration,
            hands_over=hands_over,
        )

    def _outputs(self, index: int, node: Node, inputs: Sequence[Buffer | None]) -> list[Buffer | None]:
        if node.op in LIST_OPS:
            result = list_result(
                self._graph, index, inputs, self._iteration, lambda output, size: self._make(index, output, size)
            )
            if result is not None:
                self._dropped[index] = result.dropped
                return result.outputs
        taken: set[int] = set()
        outputs: list[Buffer | None] = []
        for number, (wanted, source) in enumerate(zip(node.outputs, self._plan.sources[index], strict=True)):
            if source.alias_of is not None:
                outputs.append(inputs[source.alias_of])
                continue
            outputs.append(
                self._take_over(index, number, source.reuses, inputs, taken) or self._allocate(index, number, wanted)
            )
        return outputs

    def _take_over(
        self, index: int, number: int, candidates: Sequence[int], inputs: Sequence[Buffer | None], taken: set[int]
    ) -> Buffer | None:
        for candidate in candidates:
            buffer = inputs[candidate]
            if buffer is None or candidate in taken or not _is_free(buffer):
                continue
            taken.add(candidate)
            self._emit(RELABEL, buffer, index, self._program.tags[index][number])
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
            if value is not None and value.references == 1 and not value.is_resident:
                # The value's memory becomes the variable's; the old value goes as soon as nobody reads it.
                if held.references > 1:
                    self._rename_old(index, variable, held)
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
        self._rename_old(index, variable, held)
        copy = Buffer(variable.bytes, references=1)
        self._emit(ALLOCATE, copy, index, variable_tag(variable))
        self._hold(index, variable, copy)
        self._release(held, index)

    def _rename_old(self, index: int, variable: Variable, held: Buffer) -> None:
        """What a variable's old value is from now on, which others hold or read on."""
        buffers = self._store.buffers.items()
        other = next((other for other, buffer in buffers if buffer is held and other is not variable), None)
        if other is not None:
            self._emit(RELABEL, held, index, variable_tag(other))
            return
        # What is still read of the old value is no weight any more.
        held.is_resident = False
        old = replace(variable_tag(variable), category=Category.TEMPORARIES, role="old value, still read")
        self._emit(RELABEL, held, index, old)

    def _hold(self, index: int, variable: Variable, buffer: Buffer) -> None:
        buffer.is_resident = True
        self._store.buffers[variable] = buffer
        self._emit(RELABEL, buffer, index, variable_tag(variable))

    def _allocate(self, index: int, number: int, wanted: Output) -> Buffer | None:
        return self._make(index, number, wanted.bytes) if wanted.bytes else None

    def _make(self, index: int, number: int, size: int) -> Buffer:
        buffer = Buffer(size)
        self._emit(ALLOCATE, buffer, index, self._program.tags[index][number])
        return buffer

    def _borrow(self, index: int, sizes: Sequence[int]) -> list[Buffer]:
        """Gives the kernel of a node buffers that it frees when it ends."""
        tag = workspace_tag(self._program.tags[index][0])
        buffers = [Buffer(size, is_scratch=True) for size in sizes]
        for buffer in buffers:
            self._emit(ALLOCATE, buffer, index, tag)
        return buffers

    def _emit(self, kind: str, buffer: Buffer, index: int, tag: Tag | None = None) -> None:
        name = self._graph.nodes[index].name
        self.events.append(Event(kind, buffer, f"{self._caller}/{name}" if self._caller else name, tag))

    def _release(self, buffer: Buffer | None, index: int) -> None:
        if buffer is None:
            return
        buffer.references -= 1
        if buffer.references == 0:
            self._free(buffer, index)

    def _free(self, buffer: Buffer, index: int) -> None:
        if isinstance(buffer, TensorList):
            for element in buffer.elements:
                self._release(element, index)
            return
        self._emit(FREE, buffer, index)


def _is_free(buffer: Buffer | None) -> bool:
    """Whether the node that reads a buffer may have it."""
    # One reference is this node's own reading; a second means somebody else still needs the value.
    return buffer is not None and not isinstance(buffer, TensorList) and buffer.references == 1


class Iterations:
    """A loop's iterations, run together: each node of one runs as soon as what it waits for is there.

    A value goes to the next iteration when it is made, not when the whole iteration is done, once the loop's condition
    is known there. So what does not depend on the state, such as counting, runs ahead of what does. The number of a
    node is its index in the body, and the size of the body more for each iteration. Source of the rules:
    `propagator_state.cc`.

    Args:
        body: the graph of the loop's body.
        loop: how it runs.
        inputs: what the loop is given, each held once for it.
        begin: makes the run of one iteration, whose arguments are still to come.
    """

    def __init__(
        self,
        body: StepGraph,
        loop: Loop,
        inputs: Sequence[Buffer | None],
        begin: Callable[[int], Execution],
    ) -> None:
        self._size = len(body.nodes)
        self._arguments = body.arguments
        self._others = [node for node in edges_of(body).roots if node not in set(body.arguments)]
        self._loop = loop
        self._begin = begin
        self._running: dict[int, Execution] = {}
        self._undecided: dict[int, set[int]] = {}
        self._given: dict[int, list[int]] = {}
        self._later: list[tuple[int, int]] = []  # (iteration, node)
        self._results: dict[int, Buffer | None] = {}
        self._positions: dict[int, list[int]] = {}  # of what a node makes for the next iteration
        self._fetches = body.fetches
        for position, (node, _) in enumerate(body.fetches):
            self._positions.setdefault(node, []).append(position)
        self._first = [
            number for position, value in enumerate(inputs) for number in self._hand_over(0, position, value)
        ]

    @property
    def results(self) -> list[Buffer | None]:
        """What the last iteration made, each held once for the caller.

        Raises:
            RuntimeError: not every iteration has run to its end.
        """
        if len(self._results) != len(self._arguments) or self._running:
            raise RuntimeError(f"{len(self._running)} iterations of a loop never came to their end.")
        return [self._results[position] for position in range(len(self._arguments))]

    @property
    def roots(self) -> list[int]:
        """The nodes with which the first iteration begins."""
        return self._first

    def start(self, number: int) -> None:
        """A node of an iteration begins."""
        iteration, node = divmod(number, self._size)
        self._running[iteration].start(node)

    def finish(self, number: int) -> list[int]:
        """A node of an iteration ends; returns the nodes, of whichever iteration, that it made ready."""
        iteration, node = divmod(number, self._size)
        run = self._running[iteration]
        ready = [iteration * self._size + follower for follower in run.finish(node)]
        for position in self._positions.get(node, ()):
            ready += self._hand_over(iteration + 1, position, run.value(self._fetches[position]))
        if run.is_done:
            del self._running[iteration]
            ready += self._resumed()
        return ready

    def _hand_over(self, iteration: int, position: int, value: Buffer | None) -> list[int]:
        if iteration == self._loop.count:
            self._results[position] = value
            return []
        if iteration not in self._given:
            self._running[iteration] = self._begin(iteration)
            self._undecided[iteration] = set(self._loop.deciding)
            self._given[iteration] = []
        self._running[iteration].give(position, value)
        self._given[iteration].append(self._arguments[position])
        undecided = self._undecided[iteration]
        was_decided = not undecided and len(self._given[iteration]) > 1
        undecided.discard(position)
        if undecided:
            return []
        ready = [self._arguments[position]] if was_decided else [*self._given[iteration], *self._others]
        if iteration - min(self._running) >= self._loop.at_once:
            self._later += [(iteration, node) for node in ready]
            return []
        return [iteration * self._size + node for node in ready]

    def _resumed(self) -> list[int]:
        """What had to wait because too many iterations were under way, as far as it has not any more."""
        if not self._later:
            return []
        end = min(self._running) + self._loop.at_once
        ready = [iteration * self._size + node for iteration, node in self._later if iteration < end]
        self._later = [entry for entry in self._later if entry[0] >= end]
        return ready


def _plan(graph: StepGraph) -> Plan:
    readers: dict[tuple[int, int], int] = {}
    for node in graph.nodes:
        for source in node.inputs:
            readers[source] = readers.get(source, 0) + 1
    for fetched in graph.fetches:
        readers[fetched] = readers.get(fetched, 0) + 1
    return Plan(
        readers=readers,
        edges=edges_of(graph),
        waits_for=[len(node.inputs) + len(node.control_inputs) for node in graph.nodes],
        sources=[_sources(graph, node) for node in graph.nodes],
    )


def _sources(graph: StepGraph, node: Node) -> list[Source]:
    given = [graph.nodes[source].outputs[output] for source, output in node.inputs]
    if not given:
        return [OWN] * len(node.outputs)
    sources = []
    for number, wanted in enumerate(node.outputs):
        source = source_of(node, number, given)
        fit = tuple(candidate for candidate in source.reuses if can_take_over(given[candidate], wanted))
        sources.append(source if source.alias_of is not None else Source(reuses=fit))
    return sources
