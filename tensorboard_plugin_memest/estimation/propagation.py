"""Which nodes become ready when another has run, through loops and branches: the executor's propagator.

Each iteration of a loop runs its nodes as soon as what they wait for is there, so iterations overlap, and loops run
beside each other. The number under which a node is started is its index, and the size of the graph more for each
iteration that has begun before. Source of the rules: `propagator_state.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tensorboard_plugin_memest.estimation.branches import SWITCHES
from tensorboard_plugin_memest.estimation.events import Buffer
from tensorboard_plugin_memest.estimation.executor_graph import Edges
from tensorboard_plugin_memest.estimation.frames import frame_name
from tensorboard_plugin_memest.estimation.graph import Node, Value
from tensorboard_plugin_memest.estimation.plan import LoopPlan, Plan


@dataclass(eq=False, slots=True)
class Iteration:
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

    frame: Frame
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
class Frame:
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
    around: Iteration | None
    awaited: int
    last: int = 0
    iterations: dict[int, Iteration] = field(default_factory=dict)
    held_back: list[tuple[int, Iteration]] = field(default_factory=list)
    invariant: list[tuple[int, Iteration]] = field(default_factory=list)
    dead_exits: list[int] = field(default_factory=list)


class Propagation:
    """What has come to which nodes in one run of a graph.

    Args:
        nodes: those of the graph.
        plan: of the graph.
        edges: what leads where.
        release: gives up one hold on the output of a node, by its index.

    Attributes:
        outside: what is outside of all loops.
        iterations: that and every iteration of a loop, in the order in which they began.
        is_dead: numbers of nodes that are ready but will not run, for they are in a branch that is not taken.
        counts: how often the bodies of loops have run, by name; of one that runs several times, at most.
    """

    def __init__(
        self, nodes: Sequence[Node], plan: Plan, edges: Edges, release: Callable[[Buffer | None, int], None]
    ) -> None:
        self._nodes = nodes
        self._size = len(nodes)
        self._plan = plan
        self._followers = edges.followers
        self._release = release
        self._frames: dict[tuple[int, str], Frame] = {}
        self.outside = Iteration(Frame(LoopPlan(0, 1), "", None, 0), 0, 0, at_work=len(edges.roots))
        self.outside.frame.iterations[0] = self.outside
        self.iterations = [self.outside]
        self.is_dead: set[int] = set()
        self.counts: dict[str, int] = {}

    @property
    def in_loops(self) -> bool:
        """Whether loops run."""
        return bool(self._frames)

    def ran(self, iteration: Iteration, index: int, dead: bool) -> list[int]:
        """A node of an iteration has run, or never will.

        Returns:
            The numbers of the nodes that wait for nothing any more, in the order in which they became ready.
        """
        ready: list[int] = []
        node = self._nodes[index]
        match node.op if self._plan.loops else "":
            case "Enter":
                self._enter(iteration, index, node, dead, ready)
            case "Exit":
                self._leave(iteration, index, dead, ready)
            case "NextIteration":
                self._go_on(iteration, index, dead, ready)
            case _:
                self._tell(iteration, index, dead, ready)
        iteration.at_work -= 1
        if iteration is not self.outside:
            self._clean(iteration, ready)
        return ready

    def _tell(self, iteration: Iteration, index: int, dead: bool, ready: list[int]) -> None:
        """Tells those that follow a node, in `iteration`, that it has run, or never will."""
        slots = self._plan.slots.get(index)
        pending, waits_for, base = iteration.pending, self._plan.waits_for, iteration.base
        before = len(ready)
        if slots is None:
            followers = self._followers[index]
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
            switches = self._nodes[index].op in SWITCHES
            for follower in self._followers[index]:
                position = positions.get(follower, 0)
                positions[follower] = position + 1
                slot = slots[follower][position]
                absent = dead or (switches and slot is not None and slot != iteration.meeting[index][0])
                if self._nodes[follower].op == "Merge":
                    if self._meets(iteration, index, follower, slot, absent):
                        ready.append(base + follower)
                    continue
                pending[follower] = left = pending.get(follower, waits_for[follower]) - 1
                if absent:
                    iteration.dead.add(follower)
                if left == 0:
                    ready.append(base + follower)
        if iteration.dead:
            self.is_dead.update(number for number in ready[before:] if number - base in iteration.dead)
        iteration.at_work += len(ready) - before

    def _meets(self, iteration: Iteration, source: int, merge: int, slot: int | None, absent: bool) -> bool:
        """Something comes to where values meet, or will not come; whether that was what was waited for."""
        node = self._nodes[merge]
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
            none_comes = state[2] == len(node.inputs) or self._nodes[source].op == "Enter"
            ends = state[0] == 0 and not state[1] and none_comes
        if ends and none_comes and not state[1]:
            iteration.dead.add(merge)
        return ends

    def _enter(self, iteration: Iteration, index: int, node: Node, dead: bool, ready: list[int]) -> None:
        name = frame_name(node)
        frame = self._frames.get((iteration.base, name))
        if frame is None:
            plan = self._plan.loops[name]
            frame = self._frames[iteration.base, name] = Frame(plan, name, iteration, plan.inputs)
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

    def _leave(self, iteration: Iteration, index: int, dead: bool, ready: list[int]) -> None:
        frame = iteration.frame
        assert frame.around is not None, "An Exit is in a loop."
        if not dead:
            self._pass(index, iteration, frame.around, False, ready)
        elif iteration.number == frame.last:
            frame.dead_exits.append(index)

    def _go_on(self, iteration: Iteration, index: int, dead: bool, ready: list[int]) -> None:
        frame = iteration.frame
        if dead:
            return
        if iteration.number == frame.last:
            if len(frame.iterations) == frame.plan.at_once:
                frame.held_back.append((index, iteration))
                return
            self._increment(frame, ready)
        self._pass(index, iteration, frame.iterations[iteration.number + 1], False, ready)

    def _increment(self, frame: Frame, ready: list[int]) -> None:
        """The next iteration of a loop begins."""
        frame.last += 1
        frame.dead_exits.clear()
        iteration = frame.iterations[frame.last] = self._begin(frame, frame.last)
        held_back, frame.held_back = frame.held_back, []
        for index, source in held_back:
            self._pass(index, source, iteration, False, ready)
        for index, source in frame.invariant:
            dead = source.base + index in self.is_dead
            for output in self._plan.made[index]:
                buffer = source.values.get(output)
                if buffer is not None:
                    buffer.references += self._plan.readers[output]
            self._pass(index, source, iteration, dead, ready)

    def _begin(self, frame: Frame, number: int) -> Iteration:
        iteration = Iteration(frame, number, self._size * len(self.iterations))
        self.iterations.append(iteration)
        return iteration

    def _pass(self, index: int, source: Iteration, target: Iteration, dead: bool, ready: list[int]) -> None:
        """What a node of one iteration made goes to the nodes that follow it in another."""
        for number, output in enumerate(self._plan.made[index]):
            if output in source.values:
                target.values[output] = source.values[output]
            if (index, number) in source.known:
                target.known[index, number] = source.known[index, number]
        self._tell(target, index, dead, ready)

    def _clean(self, iteration: Iteration, ready: list[int]) -> None:
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
        self.counts[frame.name] = max(frame.last, self.counts.get(frame.name, 0))
        del self._frames[around.base, frame.name]
        for index in frame.dead_exits:
            self._tell(around, index, True, ready)
        around.loops -= 1
        self._clean(around, ready)
