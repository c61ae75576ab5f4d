"""Runs a step's graph on paper: which buffer exists when.

The result is a list of allocations and releases in order; nothing here knows the allocator's chunks, layers or
categories.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from tensorboard_plugin_memest.estimation.branches import (
    SWITCHES,
    Condition,
    conditions_of,
    kinds_of_steps,
    likely_branches,
    worked_out,
)
from tensorboard_plugin_memest.estimation.cost import UPDATES, seconds
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event, TensorList
from tensorboard_plugin_memest.estimation.executor_graph import Edges, edges_of
from tensorboard_plugin_memest.estimation.frames import frame_name
from tensorboard_plugin_memest.estimation.graph import Node, Output, Sizes, StepGraph, Value
from tensorboard_plugin_memest.estimation.known import constants, deciding, larger, scalar, sizing
from tensorboard_plugin_memest.estimation.lists import LIST_OPS, list_result
from tensorboard_plugin_memest.estimation.order import InlineOrder, Order
from tensorboard_plugin_memest.estimation.rules import OWN, Source, can_take_over, source_in
from tensorboard_plugin_memest.estimation.tag import Tag, variable_tag, workspace_tag
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.estimation.workspace.kernel import Workspace
from tensorboard_plugin_memest.memory.category import Category

# Ops on parts of a variable, after which it shares its memory with nobody: `EnsureSparseVariableAccess` in
# `training_op_helpers.h`.
SPARSE = ("ResourceScatter", "ResourceGather", "ResourceStridedSliceAssign")


# Ops of which `Execution.start` knows more than where their outputs come from.
_SPECIAL = {"Const", "ReadVariableOp", "Merge"} | SWITCHES | LIST_OPS


# Ops that make one tensor of a list's.
_JOINING = {"TensorListStack", "TensorListConcatV2"}

# How many iterations of a loop may be under way where it does not say.
_AT_ONCE = 10

# Of a node that makes one output at most, as most do: which output of all in the graph that is (None for none); the one
# whose buffer it has (None if its own); those whose buffers it may take over; its bytes; its tag.
Plain = tuple[int | None, int | None, tuple[int, ...], int, Tag | None]
_NOTHING: Plain = (None, None, (), 0, None)


@dataclass
class VariableStore:
    """What variables hold between steps; changes with each.

    Attributes:
        buffers: their memory, some of them together; another one when an update has to copy.
        copied_on_read: those of which every read is a copy.
        values: what counters among them count, as far as it is known.
    """

    buffers: dict[Variable, Buffer] = field(default_factory=dict)
    copied_on_read: set[Variable] = field(default_factory=set)
    values: dict[Variable, Value] = field(default_factory=dict)
    _holders: dict[Buffer, deque[Variable]] | None = field(default=None, init=False, repr=False)

    def share(self, variable: Variable, buffer: Buffer) -> None:
        """`variable` holds what others may hold, too."""
        self.buffers[variable] = buffer
        self._holders = None

    def other_holder(self, buffer: Buffer, than: Variable) -> Variable | None:
        """The first other variable that holds `buffer`, asked when `than` is about to give it up."""
        if self._holders is None:
            # Slots with equal first values may be thousands, so nobody goes through all of them for each.
            self._holders = {}
            for variable, held in self.buffers.items():
                self._holders.setdefault(held, deque()).append(variable)
        holders = self._holders.get(buffer, deque())
        while holders and (holders[0] is than or self.buffers[holders[0]] is not buffer):
            holders.popleft()
        return holders[0] if holders else None

    @property
    def sharing(self) -> tuple[frozenset[Variable], frozenset[Variable]]:
        """Between steps: which variables share memory with others or with constants, and which never do."""
        shared = frozenset(variable for variable, buffer in self.buffers.items() if buffer.references > 1)
        return shared, frozenset(self.copied_on_read)


@dataclass(frozen=True)
class LoopPlan:
    """A loop: how many values are given to it, and how many of its iterations may be under way at a time."""

    inputs: int
    at_once: int


@dataclass(frozen=True)
class Plan:
    """What does not change from run to run of a graph.

    Every output of a node has a number of its own, which stands for it here.

    Attributes:
        given: for each node, the outputs that it reads.
        made: for each node, its own outputs.
        readers: how often each output is read.
        fetched: the outputs that are returned.
        returned: how often each output is, where that is ever.
        edges: what leads where, in the order of the graph's nodes.
        waits_for: for each node, how many edges lead to it.
        sources: for each node, where each of its outputs comes from; only inputs that are fit are named.
        loops: the loops, by name.
        slots: for nodes that do not treat all that follow alike, or lead to where values meet: for each follower, the
            output that each edge to it carries, None where it is only waited for.
        deciding: nodes whose values decide what runs.
        sizing: those of them whose values may decide how large a tensor is.
        joining: nodes that make one tensor of a list's, of which tracing did not find out how many there are.
        constants: the values of those of them that are constants.
        conditions: for each node, on which branches it depends.
        likely: which branch is reckoned with where no more is known, by what decides between the branches.
    """

    given: list[list[int]]
    made: list[range]
    readers: list[int]
    fetched: list[int]
    returned: Counter[int]
    edges: Edges
    waits_for: list[int]
    sources: list[list[Source]]
    loops: dict[str, LoopPlan]
    slots: dict[int, dict[int, list[int | None]]]
    deciding: frozenset[int]
    sizing: frozenset[int]
    joining: frozenset[int]
    constants: dict[int, Value]
    conditions: list[frozenset[Condition]]
    likely: dict[tuple[int, int], int]


@dataclass
class Program:
    """A graph, what its tensors are, and what its kernels keep; with those of the functions it calls.

    Attributes:
        graph: the graph.
        tags: for each node, what each of its outputs is.
        constants: the buffers of the graph's constants, by node, which outlive the step.
        called: for a node that calls a function which the runtime leaves where it is, its program.
        workspaces: what the kernels of some nodes allocate for themselves while they run.
        is_compiled: whether it is a function that XLA compiles.
        values: what variables hold before the first step, as far as it is known.
    """

    graph: StepGraph
    tags: Sequence[Sequence[Tag]]
    constants: dict[int, Buffer] = field(default_factory=dict)
    called: dict[int, Program] = field(default_factory=dict)
    workspaces: Mapping[int, Workspace] = field(default_factory=dict)
    is_compiled: bool = False
    values: Mapping[Variable, Value] = field(default_factory=dict)

    @cached_property
    def plan(self) -> Plan:
        """What every run of the graph has in common."""
        return _plan(self.graph)

    @cached_property
    def plain(self) -> list[Plain | None]:
        """What there is to do for each node that only makes its output, if it has one; None for others."""
        plan = self.plan
        special = {*self.called, *self.workspaces, *self.graph.variable_of, *self.graph.arguments}
        special |= {*self.graph.held, *self.graph.fed, *plan.deciding, *plan.joining}
        found: list[Plain | None] = []
        for index, node in enumerate(self.graph.nodes):
            reads_handle = bool(node.inputs) and node.inputs[0][0] in self.graph.variable_of
            if index in special or len(node.outputs) > 1 or node.op in _SPECIAL or reads_handle:
                found.append(None)
            elif not node.outputs:
                found.append(_NOTHING)
            else:
                source, given = plan.sources[index][0], plan.given[index]
                alias = None if source.alias_of is None else given[source.alias_of]
                reuses = tuple(given[one] for one in source.reuses)
                found.append((plan.made[index][0], alias, reuses, node.outputs[0].bytes, self.tags[index][0]))
        return found

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
        for program in self.called.values():
            events += program.constant_events()
        return events

    def kinds_of_steps(self, values: Mapping[Variable, Value]) -> dict[int, dict[Variable, Value]]:
        """For the first step of each kind, by its number, what variables hold before it."""
        return kinds_of_steps(self.graph, self.plan, values)

    @cached_property
    def trial(self) -> Trial:
        """What a run comes to in which memory does not matter."""
        if not (self.plan.loops or self.plan.slots or self.called):
            return Trial(len(self.graph.nodes), {}, frozenset())
        run = self._tried(self.values)
        return Trial(run.started, run.iterations, frozenset(run.undecided))

    @property
    def sizes(self) -> Sizes:
        """What decides how large tensors are, where tracing did not find that out, in steps of every kind."""
        values: dict[int, Value] = {}
        joined: dict[int, list[int]] = {}
        for before in self.kinds_of_steps(self.values).values():
            run = self._tried(before)
            values |= {index: larger(values.get(index), value) for index, value in run.values.items()}
            joined |= {index: max(joined.get(index, []), sizes, key=sum) for index, sizes in run.joined.items()}
        return _sizes(self.graph, values, joined)

    def _tried(self, values: Mapping[Variable, Value]) -> Execution:
        """A run in which memory does not matter; `values` are what variables hold before it."""
        handles = set(self.graph.variable_of.values())
        buffers = {variable: Buffer(variable.bytes, 1, is_resident=True) for variable in handles}
        run = Execution(self, InlineOrder(), VariableStore(buffers, values=dict(values)))
        run.run()
        return run

    @property
    def ops(self) -> int:
        """How many ops one run runs, those of functions that it calls included, and of loops each time."""
        return self.trial.ops


@dataclass(frozen=True)
class Trial:
    """What a run of a program comes to.

    Attributes:
        ops: how many ops run.
        iterations: how often the bodies of loops run, by name; of one that runs several times, at most.
        undecided: names of loops of which the data decides that, which were counted once.
    """

    ops: int
    iterations: Mapping[str, int]
    undecided: frozenset[str]


@dataclass(eq=False, slots=True)
class _Iteration:
    """One iteration of a loop, or what is outside of all loops: which nodes wait for what, and what is there for them.

    Attributes:
        frame: the loop.
        number: which iteration of it.
        base: what is added to the indices of nodes, for a node runs once in each iteration.
        pending: how many edges a node still waits for, where that has changed.
        dead: nodes that something leads to which did not come.
        meeting: nodes where values meet: edges only waited for, whether a value has come, how many will not.
        values: what the outputs of nodes hold, for those that read them here.
        known: their values, as far as it matters and they are known.
        at_work: how many nodes are ready or running.
        loops: how many loops run that were entered from here.
    """

    frame: _Frame
    number: int
    base: int
    pending: dict[int, int] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)
    meeting: dict[int, list[int]] = field(default_factory=dict)
    values: dict[int, Buffer | None] = field(default_factory=dict)
    known: dict[tuple[int, int], Value] = field(default_factory=dict)
    at_work: int = 0
    loops: int = 0


@dataclass(eq=False, slots=True)
class _Frame:
    """A loop that runs.

    Attributes:
        plan: what does not change.
        name: its name.
        around: the iteration in which it was entered; None for what is outside of all loops.
        awaited: how many of the values that it is given have not come.
        last: number of the newest iteration.
        iterations: those under way.
        held_back: what the next iteration will get, once it may begin.
        invariant: what every iteration gets.
        dead_exits: ways out that nothing has come out of in the newest iteration.
    """

    plan: LoopPlan
    name: str
    around: _Iteration | None
    awaited: int
    last: int = 0
    iterations: dict[int, _Iteration] = field(default_factory=dict)
    held_back: list[tuple[int, _Iteration]] = field(default_factory=list)
    invariant: list[tuple[int, _Iteration]] = field(default_factory=list)
    dead_exits: list[int] = field(default_factory=list)


class Execution:
    """One run of a step's graph.

    Each iteration of a loop runs its nodes as soon as what they wait for is there, so iterations overlap, and loops run
    beside each other. The number under which a node is started is its index, and the size of the graph more for each
    iteration that has begun before. Source of the rules: `executor.cc`, `propagator_state.cc`.

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
        self._plain = program.plain
        self._constants = set(program.constants.values())
        self._outside = _Iteration(_Frame(LoopPlan(0, 1), "", None, 0), 0, 0)
        self._outside.frame.iterations[0] = self._outside
        self._iterations = [self._outside]
        self._frames: dict[tuple[int, str], _Frame] = {}
        self._is_dead: set[int] = set()
        self._dropped: dict[int, tuple[Buffer | None, ...]] = {}
        self._scratch: dict[int, list[Buffer]] = {}
        self._ran = bytearray(self._size)
        self._order = order.of_many(self._size, self._is_dead) if program.plan.loops or program.plan.slots else order
        self.iterations: dict[str, int] = {}
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
        self._outside.at_work = len(self._edges.roots)
        self._order.run(self)
        if not all(self._ran) or self._frames:
            raise RuntimeError(f"{sum(self._ran)} of {self._size} ops became ready.")
        return [self._outside.values.get(fetched) for fetched in self._plan.fetched]

    @property
    def roots(self) -> list[int]:
        """The nodes that wait for nothing, in the order in which they are started."""
        return self._edges.roots

    def start(self, number: int) -> None:
        """Gives a node's outputs their memory."""
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
                    if output in plan.returned and iteration is self._outside:
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
        ready: list[int] = []
        if plan.loops:
            node = self._graph.nodes[index]
            match node.op:
                case "Enter":
                    self._enter(iteration, index, node, dead, ready)
                case "Exit":
                    self._leave(iteration, index, dead, ready)
                case "NextIteration":
                    self._go_on(iteration, index, dead, ready)
                case _:
                    self._tell(iteration, index, dead, ready)
        else:
            self._tell(iteration, index, dead, ready)
        iteration.at_work -= 1
        if iteration is not self._outside:
            self._clean(iteration, ready)
        return ready

    def _tell(self, iteration: _Iteration, index: int, dead: bool, ready: list[int]) -> None:
        """Tells those that follow a node, in `iteration`, that it has run, or never will."""
        slots = self._plan.slots.get(index)
        pending, waits_for, base = iteration.pending, self._plan.waits_for, iteration.base
        before = len(ready)
        if slots is None:
            followers = self._edges.followers[index]
            if dead:
                iteration.dead.update(followers)
            for follower in followers:
                # Most wait for one thing only: nothing has to be noted about them.
                left = waits_for[follower] - 1
                if left:
                    pending[follower] = left = pending.get(follower, left + 1) - 1
                if left == 0:
                    ready.append(base + follower)
        else:
            positions: dict[int, int] = {}
            switches = self._graph.nodes[index].op in SWITCHES
            for follower in self._edges.followers[index]:
                position = positions.get(follower, 0)
                positions[follower] = position + 1
                slot = slots[follower][position]
                absent = dead or (switches and slot is not None and slot != iteration.meeting[index][0])
                if self._graph.nodes[follower].op == "Merge":
                    if self._meets(iteration, index, follower, slot, absent):
                        ready.append(base + follower)
                    continue
                pending[follower] = left = pending.get(follower, waits_for[follower]) - 1
                if absent:
                    iteration.dead.add(follower)
                if left == 0:
                    ready.append(base + follower)
        if iteration.dead:
            self._is_dead.update(number for number in ready[before:] if number - base in iteration.dead)
        iteration.at_work += len(ready) - before

    def _meets(self, iteration: _Iteration, source: int, merge: int, slot: int | None, absent: bool) -> bool:
        """Something comes to where values meet, or will not come; whether that was what was waited for."""
        node = self._graph.nodes[merge]
        state = iteration.meeting.get(merge)
        if state is None:
            # Edges only waited for; whether a value has come; how many will not; which has come.
            state = iteration.meeting[merge] = [len(node.control_inputs), 0, 0, -1]
        if slot is None:
            state[0] -= 1
            none_comes = state[2] == len(node.inputs)
            ends = state[0] == 0 and (bool(state[1]) or none_comes)
        elif not absent:
            first = not state[1]
            state[1] = 1
            if first:
                state[3] = node.inputs.index((source, slot))
            return first and state[0] == 0
        else:
            state[2] += 1
            none_comes = state[2] == len(node.inputs) or self._graph.nodes[source].op == "Enter"
            ends = state[0] == 0 and not state[1] and none_comes
        if ends and none_comes and not state[1]:
            iteration.dead.add(merge)
        return ends

    def _enter(self, iteration: _Iteration, index: int, node: Node, dead: bool, ready: list[int]) -> None:
        name = frame_name(node)
        frame = self._frames.get((iteration.base, name))
        if frame is None:
            plan = self._plan.loops[name]
            frame = self._frames[iteration.base, name] = _Frame(plan, name, iteration, plan.inputs)
            frame.iterations[0] = self._begin(frame, 0)
            iteration.loops += 1
        if node.attributes["is_constant"].b:
            for output in self._plan.made[index]:
                buffer = iteration.values.get(output)
                if buffer is not None:
                    # Each iteration has readers of its own, and the loop holds it besides.
                    buffer.references += 1 + self._plan.readers[output] * frame.last
            frame.invariant.append((index, iteration))
            for inner in list(frame.iterations.values()):
                self._pass(index, iteration, inner, dead, ready)
                self._clean(inner, ready)
        else:
            self._pass(index, iteration, frame.iterations[0], dead, ready)
        frame.awaited -= 1
        if 0 in frame.iterations:
            self._clean(frame.iterations[0], ready)

    def _leave(self, iteration: _Iteration, index: int, dead: bool, ready: list[int]) -> None:
        frame = iteration.frame
        assert frame.around is not None, "An Exit is in a loop."
        if not dead:
            self._pass(index, iteration, frame.around, False, ready)
        elif iteration.number == frame.last:
            frame.dead_exits.append(index)

    def _go_on(self, iteration: _Iteration, index: int, dead: bool, ready: list[int]) -> None:
        frame = iteration.frame
        if dead:
            return
        if iteration.number == frame.last:
            if len(frame.iterations) == frame.plan.at_once:
                frame.held_back.append((index, iteration))
                return
            self._increment(frame, ready)
        self._pass(index, iteration, frame.iterations[iteration.number + 1], False, ready)

    def _increment(self, frame: _Frame, ready: list[int]) -> None:
        """The next iteration of a loop begins."""
        frame.last += 1
        frame.dead_exits.clear()
        iteration = frame.iterations[frame.last] = self._begin(frame, frame.last)
        held_back, frame.held_back = frame.held_back, []
        for index, source in held_back:
            self._pass(index, source, iteration, False, ready)
        for index, source in frame.invariant:
            dead = source.base + index in self._is_dead
            for output in self._plan.made[index]:
                buffer = source.values.get(output)
                if buffer is not None:
                    buffer.references += self._plan.readers[output]
            self._pass(index, source, iteration, dead, ready)

    def _begin(self, frame: _Frame, number: int) -> _Iteration:
        iteration = _Iteration(frame, number, self._size * len(self._iterations))
        self._iterations.append(iteration)
        return iteration

    def _pass(self, index: int, source: _Iteration, target: _Iteration, dead: bool, ready: list[int]) -> None:
        """What a node of one iteration made goes to the nodes that follow it in another."""
        for number, output in enumerate(self._plan.made[index]):
            if output in source.values:
                target.values[output] = source.values[output]
            if (index, number) in source.known:
                target.known[index, number] = source.known[index, number]
        self._tell(target, index, dead, ready)

    def _clean(self, iteration: _Iteration, ready: list[int]) -> None:
        """Ends the iterations of a loop that are done, begins those that waited for that, and ends the loop."""
        frame = iteration.frame
        if frame.around is None:
            return
        while iteration.at_work == 0 and iteration.loops == 0:
            is_first = iteration.number == 0
            if frame.awaited if is_first else iteration.number - 1 in frame.iterations:
                return
            if frame.iterations.pop(iteration.number, None) is None:
                return
            if frame.held_back:
                self._increment(frame, ready)
            following = frame.iterations.get(iteration.number + 1)
            if following is None:
                break
            iteration = following
        if frame.iterations or frame.awaited:
            return
        for index, source in frame.invariant:
            for output in self._plan.made[index]:
                self._release(source.values.get(output), index)
        around = frame.around
        self.iterations[frame.name] = max(frame.last, self.iterations.get(frame.name, 0))
        del self._frames[around.base, frame.name]
        for index in frame.dead_exits:
            self._tell(around, index, True, ready)
        around.loops -= 1
        self._clean(around, ready)

    def _taken(self, iteration: _Iteration, index: int, node: Node) -> int:
        """Which output of a Switch gets its input; noted for those that follow."""
        source = node.inputs[1]
        value = scalar(iteration.known.get(source))
        taken = self._guessed(iteration, source) if value is None else value
        if not 0 <= taken < len(node.outputs):
            # A case that there is not is the last.
            taken = len(node.outputs) - 1
        iteration.meeting[index] = [taken]
        return taken

    def _guessed(self, iteration: _Iteration, source: tuple[int, int]) -> int:
        decider = self._graph.nodes[source[0]]
        if decider.op == "LoopCond":
            # A loop that the data ends is counted once.
            self.undecided.add(iteration.frame.name)
            return int(iteration.number == 0)
        # Which branch is taken is decided in the run.
        return self._plan.likely.get(source, 0)

    def _work_out(self, iteration: _Iteration, index: int) -> None:
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
        iteration: _Iteration,
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


def _plan(graph: StepGraph) -> Plan:
    starts = [0, *accumulate(len(node.outputs) for node in graph.nodes)]
    given = [[starts[source] + output for source, output in node.inputs] for node in graph.nodes]
    readers = [0] * starts[-1]
    for sources in given:
        for source in sources:
            readers[source] += 1
    fetched = [starts[source] + output for source, output in graph.fetches]
    nodes = deciding(graph)
    conditions = conditions_of(graph)
    return Plan(
        given=given,
        made=[range(start, end) for start, end in pairwise(starts)],
        readers=readers,
        fetched=fetched,
        returned=Counter(fetched),
        edges=edges_of(graph),
        waits_for=[len(node.inputs) + len(node.control_inputs) for node in graph.nodes],
        sources=[_sources(graph, node) for node in graph.nodes],
        loops=_loops(graph),
        slots=_slots(graph),
        deciding=nodes,
        sizing=sizing(graph) & nodes,
        joining=frozenset(index for index in graph.unsized if graph.nodes[index].op in _JOINING),
        constants=constants(graph, nodes),
        conditions=conditions,
        likely=likely_branches(graph, conditions),
    )


def _loops(graph: StepGraph) -> dict[str, LoopPlan]:
    loops: dict[str, LoopPlan] = {}
    for node in graph.nodes:
        if node.op == "Enter":
            known = loops.get(frame_name(node))
            at_once = node.attributes["parallel_iterations"].i or _AT_ONCE
            loops[frame_name(node)] = LoopPlan(known.inputs + 1 if known else 1, at_once)
    return loops


def _sizes(graph: StepGraph, values: Mapping[int, Value], joined: Mapping[int, Sequence[int]]) -> Sizes:
    arrays = {
        graph.nodes[index].name: value.astype(graph.nodes[index].outputs[0].dtype)
        for index, value in values.items()
        if isinstance(value, np.ndarray) and len(graph.nodes[index].outputs) == 1
    }
    shapes = {}
    for index, elements in joined.items():
        node = graph.nodes[index]
        whole, *others = node.outputs
        if whole.shape and whole.bytes:
            rows = sum(size or max(elements) for size in elements) * whole.shape[0] // whole.bytes
            shapes[node.name] = [(rows, *whole.shape[1:]), *((len(elements),) for _ in others)]
    return Sizes(arrays, shapes)


def _slots(graph: StepGraph) -> dict[int, dict[int, list[int | None]]]:
    told = {index for index, node in enumerate(graph.nodes) if node.op in SWITCHES}
    for node in graph.nodes:
        if node.op == "Merge":
            told |= {source for source, _ in node.inputs} | set(node.control_inputs)
    slots: dict[int, dict[int, list[int | None]]] = {index: {} for index in told}
    for index, node in enumerate(graph.nodes):
        for source, output in node.inputs:
            if source in told:
                slots[source].setdefault(index, []).append(output)
    for index, node in enumerate(graph.nodes):
        for source in node.control_inputs:
            if source in told:
                slots[source].setdefault(index, []).append(None)
    return slots


def _sources(graph: StepGraph, node: Node) -> list[Source]:
    given = [graph.nodes[source].outputs[output] for source, output in node.inputs]
    if not given:
        return [OWN] * len(node.outputs)
    sources = []
    for number, wanted in enumerate(node.outputs):
        source = source_in(graph, node, number)
        fit = tuple(candidate for candidate in source.reuses if can_take_over(given[candidate], wanted))
        sources.append(source if source.alias_of is not None else Source(reuses=fit))
    return sources
