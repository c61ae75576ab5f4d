"""Runs a step's graph on paper: which buffer exists when.

The result is a list of allocations and releases in order; nothing here knows the allocator's chunks, layers or
categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorboard_plugin_memest.estimation.branches import SWITCHES
from tensorboard_plugin_memest.estimation.cost import UPDATES, seconds
from tensorboard_plugin_memest.estimation.deadline import check_deadline
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event, TensorList
from tensorboard_plugin_memest.estimation.executor_graph import Edges
from tensorboard_plugin_memest.estimation.graph import Node, Output, Value
from tensorboard_plugin_memest.estimation.kinds import worked_out
from tensorboard_plugin_memest.estimation.known import larger, scalar
from tensorboard_plugin_memest.estimation.lists import LIST_OPS, list_result
from tensorboard_plugin_memest.estimation.order import Order
from tensorboard_plugin_memest.estimation.program import Plain, Program
from tensorboard_plugin_memest.estimation.propagation import Iteration, Propagation
from tensorboard_plugin_memest.estimation.tag import Tag, variable_tag, workspace_tag
from tensorboard_plugin_memest.estimation.variable_store import SPARSE, VariableStore
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.estimation.workspace.kernel import Workspace
from tensorboard_plugin_memest.memory.category import Category

# Nodes that are started between two looks at the clock.
_BETWEEN_LOOKS = 1024


class Execution:
    """One run of a step's graph; nodes are started under the numbers that propagation gives them.

    Source of the rules: `executor.cc`.

    Args:
        program: what runs.
        order: decides what runs next; used once.
        store: the variables' buffers; changed by the run.
        edges: what leads where in the executor's graph, if that is not in the order of the graph's nodes.
        arguments: for a called function, what it is given.
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
    ) -> None:
        self._program = program
        self._graph = program.graph
        self._size = len(program.graph.nodes)
        self._store = store
        self._caller = caller
        names = [node.name for node in program.graph.nodes]
        self._names = [f"{caller}/{name}" for name in names] if caller else names
        self._arguments = dict(zip(program.graph.arguments, arguments, strict=True)) if arguments else {}
        self._plan = program.plan
        self._edges = edges or program.plan.edges
        self._propagation = Propagation(program.graph.nodes, program.plan, self._edges, self._release)
        self._iterations = self._propagation.iterations
        self._is_dead = self._propagation.is_dead
        self._plain = program.plain
        self._constants = set(program.constants.values())
        self._dropped: dict[int, tuple[Buffer | None, ...]] = {}
        self._scratch: dict[int, list[Buffer]] = {}
        self._ran = bytearray(self._size)
        self._order = order.of_many(self._size, self._is_dead) if program.plan.loops or program.plan.slots else order
        self.iterations = self._propagation.counts
        self.undecided: set[str] = set()
        self.values: dict[int, Value] = {}
        self.joined: dict[int, list[int]] = {}
        self.started = 0
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
        if not all(self._ran) or self._propagation.in_loops:
            raise RuntimeError(f"{sum(self._ran)} of {self._size} ops became ready.")
        return [self._propagation.outside.values.get(fetched) for fetched in self._plan.fetched]

    @property
    def roots(self) -> list[int]:
        """The nodes that wait for nothing, in the order in which they are started."""
        return self._edges.roots

    def start(self, number: int) -> None:
        """Gives a node's outputs their memory."""
        if not self.started % _BETWEEN_LOOKS:
            check_deadline()
        self.started += 1
        if number in self._is_dead:
            return
        place, index = divmod(number, self._size)
        iteration = self._iterations[place]
        values = iteration.values
        plain = self._plain[index]
        if plain is not None:
            self._make_plainly(index, plain, values)
            return
        inputs = [values.get(source) for source in self._plan.given[index]]
        node = self._graph.nodes[index]
        made = self._plan.made[index]
        if index in self._plan.deciding:
            self._work_out(iteration, index)
        if index in self._arguments:
            outputs: list[Buffer | None] = [self._arguments[index]]
        elif index in self._program.constants:
            outputs = [self._program.constants[index]]
        elif node.op in SWITCHES:
            outputs = [None] * len(node.outputs)
            outputs[self._taken(iteration, index, node)] = inputs[0]
        elif index in self._graph.variable_of:
            outputs = [None]
        elif node.op == "ReadVariableOp":
            outputs = [self._read(index, node)]
        elif node.op == "Merge":
            came = iteration.meeting[index][3]
            outputs = [inputs[came], self._allocate(index, 1, node.outputs[1]) if len(node.outputs) > 1 else None]
        elif index in self._program.called:
            for output, value in enumerate(self._call(index, inputs)):
                values[made[output]] = value
                if value is not None and not value.is_resident and not isinstance(value, TensorList):
                    self._emit(RELABEL, value, index, self._program.tags[index][output])
            return
        else:
            self._assign(number, node, inputs)
            workspace = self._program.workspaces.get(index)
            if workspace:
                taken = workspace.taken_over
                spares = taken is not None and _is_free(inputs[taken])
                self._scratch[number] = self._borrow(index, workspace.before[spares:])
            outputs = self._outputs(iteration, index, node, inputs, workspace)
            if workspace:
                self._scratch[number] += self._borrow(index, workspace.after)
        for output, buffer in zip(made, outputs, strict=False):
            if buffer is not None:
                # Held by the running kernel until its readers are known.
                buffer.references += 1
                values[output] = buffer

    def _make_plainly(self, index: int, plain: Plain, values: dict[int, Buffer | None]) -> None:
        """Gives the only output of a node, if it has one, its memory."""
        output, alias, reuses, size, tag = plain
        if output is None:
            return
        buffer = None
        if alias is not None:
            buffer = values.get(alias)
        else:
            for candidate in reuses:
                if _is_free(values.get(candidate)):
                    buffer = values[candidate]
                    break
            if buffer is not None:
                self.events.append(Event(RELABEL, buffer, self._names[index], tag))
            elif size:
                buffer = Buffer(size)
                self.events.append(Event(ALLOCATE, buffer, self._names[index], tag))
        if buffer is not None:
            buffer.references += 1
            values[output] = buffer

    def finish(self, number: int) -> list[int]:
        """Hands a node's outputs to their readers and releases its inputs.

        Returns:
            The nodes that wait for nothing any more, in the order in which they became ready.
        """
        place, index = divmod(number, self._size)
        iteration = self._iterations[place]
        self._ran[index] = 1
        if number in self._scratch:
            for scratch in self._scratch.pop(number):
                self._free(scratch, index)
        values, plan = iteration.values, self._plan
        dead = number in self._is_dead
        if not dead:
            for output in plan.made[index]:
                buffer = values.get(output)
                if buffer is not None:
                    # The kernel's own hold goes.
                    buffer.references += plan.readers[output] - 1
                    if output in plan.returned and iteration is self._propagation.outside:
                        buffer.references += plan.returned[output]
                    if buffer.references == 0:
                        self._free(buffer, index)
        for source in plan.given[index]:
            buffer = values.get(source)
            if buffer is not None:
                buffer.references -= 1
                if buffer.references == 0:
                    self._free(buffer, index)
        # What a list gave up goes once its new reader, if any, holds it; what was copied, once the copy is made.
        if number in self._dropped:
            for element in self._dropped.pop(number):
                self._release(element, index)
        return self._propagation.ran(iteration, index, dead)

    def _taken(self, iteration: Iteration, index: int, node: Node) -> int:
        """Which output of a Switch gets its input; noted for those that follow."""
        source = node.inputs[1]
        value = scalar(iteration.known.get(source))
        taken = self._guessed(iteration, source) if value is None else value
        if not 0 <= taken < len(node.outputs):
            # A case that there is not is the last.
            taken = len(node.outputs) - 1
        iteration.meeting[index] = [taken]
        return taken

    def _guessed(self, iteration: Iteration, source: tuple[int, int]) -> int:
        decider = self._graph.nodes[source[0]]
        if decider.op == "LoopCond":
            # A loop that the data ends is counted once.
            self.undecided.add(iteration.frame.name)
            return int(iteration.number == 0)
        # Which branch is taken is decided in the run.
        return self._plan.likely.get(source, 0)

    def _work_out(self, iteration: Iteration, index: int) -> None:
        """The value of a node that decides what runs."""
        for output, value in enumerate(worked_out(self._graph, self._plan, index, iteration.known, self._store.values)):
            if value is not None:
                iteration.known[index, output] = value
                if index in self._plan.sizing:
                    self.values[index] = larger(self.values.get(index), value)

    def _call(self, index: int, inputs: Sequence[Buffer | None]) -> list[Buffer | None]:
        """Runs the function that a node calls; each value comes back held once."""
        program = self._program.called[index]
        graph = program.graph
        order = self._order.inside(lambda node: graph.nodes[node].op, lambda node: seconds(graph, node))
        run = Execution(
            program,
            order,
            self._store,
            events=self.events,
            caller=self._names[index],
            arguments=inputs,
        )
        results = run.call()
        if program.is_compiled:
            results = [self._copied(index, output, value, inputs) for output, value in enumerate(results)]
        self.started += run.started
        self.iterations |= run.iterations
        self.undecided |= run.undecided
        return results

    def _copied(self, index: int, output: int, value: Buffer | None, inputs: Sequence[Buffer | None]) -> Buffer | None:
        """What a function that XLA compiled returns: never the memory of what it was given or read."""
        if value is None or not (value.is_resident or any(value is given for given in inputs)):
            return value
        copy = self._make(index, output, value.bytes)
        copy.references = 1
        self._release(value, index)
        return copy

    def _outputs(
        self,
        iteration: Iteration,
        index: int,
        node: Node,
        inputs: Sequence[Buffer | None],
        workspace: Workspace | None,
    ) -> list[Buffer | None]:
        if index in self._plan.joining and isinstance(inputs[0], TensorList):
            sizes = [0 if element is None else element.bytes for element in inputs[0].elements]
            self.joined[index] = max(self.joined.get(index, []), sizes, key=sum)
        if node.op in LIST_OPS:
            known = iteration.known.get(node.inputs[1]) if len(node.inputs) > 1 else None
            result = list_result(
                self._graph,
                index,
                inputs,
                iteration.number,
                lambda output, size: self._make(index, output, size),
                scalar(known),
            )
            if result is not None:
                self._dropped[iteration.base + index] = result.dropped
                return result.outputs
        taken: set[int] = set()
        outputs: list[Buffer | None] = []
        for number, (wanted, source) in enumerate(zip(node.outputs, self._plan.sources[index], strict=True)):
            if source.alias_of is not None:
                outputs.append(inputs[source.alias_of])
                continue
            fit = source.reuses
            if workspace is not None and workspace.becomes is not None:
                fit = (workspace.becomes,)
            outputs.append(self._take_over(index, number, fit, inputs, taken) or self._allocate(index, number, wanted))
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

    def _assign(self, number: int, node: Node, inputs: Sequence[Buffer | None]) -> None:
        index = number % self._size
        variable = self._graph.variable_of.get(node.inputs[0][0]) if node.inputs else None
        if variable is None:
            return
        held = self._store.buffers[variable]
        copies = variable in self._store.copied_on_read
        if node.op == "AssignVariableOp" and not copies:
            value = inputs[1]
            if value is None or value is held:
                return
            # The value's memory is the variable's from now on, whoever holds it too: a constant, another variable, a
            # reader. The old value goes as soon as nobody reads it.
            if held.references > 1:
                self._rename_old(index, variable, held)
            value.references += 1
            if value.is_resident:
                self._store.share(variable, value)
            else:
                self._hold(index, variable, value)
            self._release(held, index)
        elif node.op == "AssignVariableOp" or (node.op in UPDATES and (copies or held.references != 1)):
            # Somebody else may hold the old value, so it is copied before it is changed.
            self._replace(number, variable, held)
        elif node.op.startswith(SPARSE):
            self._store.copied_on_read.add(variable)
            if not copies and held.references != 1:
                self._replace(number, variable, held)

    def _replace(self, number: int, variable: Variable, held: Buffer) -> None:
        index = number % self._size
        if held.references > 1:
            self._rename_old(index, variable, held)
        copy = Buffer(variable.bytes, references=1)
        self._emit(ALLOCATE, copy, index, variable_tag(variable))
        self._hold(index, variable, copy)
        # Who updates another variable of the same value meanwhile finds it held by both, and makes a copy, too.
        self._dropped[number] = (held,)

    def _rename_old(self, index: int, variable: Variable, held: Buffer) -> None:
        """What a variable's old value is from now on, which others hold or read on."""
        if held in self._constants:
            return
        other = self._store.other_holder(held, than=variable)
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
        self.events.append(Event(kind, buffer, self._names[index], tag))

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
