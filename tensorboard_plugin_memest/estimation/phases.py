"""The phases of a run, from the first variable to a steady step."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tensorboard_plugin_memest.estimation.accumulated import Accumulated
from tensorboard_plugin_memest.estimation.allocator import ROUNDING, BfcAllocator
from tensorboard_plugin_memest.estimation.attribution import BACKWARD, FORWARD, UPDATE
from tensorboard_plugin_memest.estimation.births import (
    Birth,
    birth_events,
    building_events,
    sent_birth_events,
    shared_birth_events,
)
from tensorboard_plugin_memest.estimation.computed import Computed
from tensorboard_plugin_memest.estimation.cost import cycles, seconds
from tensorboard_plugin_memest.estimation.deadline import check_deadline
from tensorboard_plugin_memest.estimation.device import CPU, GPU, Device
from tensorboard_plugin_memest.estimation.eager import EagerRun
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, Buffer, Event
from tensorboard_plugin_memest.estimation.execution import Execution
from tensorboard_plugin_memest.estimation.executor_graph import Edges, executor_edges
from tensorboard_plugin_memest.estimation.folding import is_folded, is_made_once
from tensorboard_plugin_memest.estimation.graph import Value
from tensorboard_plugin_memest.estimation.kinds import kinds_of_steps
from tensorboard_plugin_memest.estimation.order import InlineOrder, Learnt, Order, PoolOrder
from tensorboard_plugin_memest.estimation.program import Program
from tensorboard_plugin_memest.estimation.replay import Memory, Played, resident_bytes
from tensorboard_plugin_memest.estimation.saved import CHECKPOINT, reading_events
from tensorboard_plugin_memest.estimation.small import trace_events
from tensorboard_plugin_memest.estimation.trial import trial_of
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.timeline import END_OF_STEP

# How often a run is played, each time with other readers of a tensor first where addresses decide about that, and with
# kernels faster or slower than thought by at most so much: all of a kind together, and each of them a little more. In
# loops, whose kernels are known better, it is each by itself.
VARIATIONS = 16
FEWEST_VARIATIONS = 4
PLAYED_OPS = 40_000
LARGEST_FACTOR = 2.5
SMALL_FACTOR = 1.3
# Other programs hold some kernels up for longer: seeds of the plays that are made so besides, with several threads.
LARGEST_DELAY = 10.0
DELAYED = range(1, 4)
# By how much one machine may be faster or slower than another with all kernels.
LARGEST_PACE = 1.4

# Six of ten plays stay within the peak that is predicted: with one thread a process goes the same way in every step,
# and shares from a half to 0.7 came closest to what was measured. With several threads every step is another play, and
# a training meets one of the higher ones soon: of 52 configurations with TensorFlow's default threads three quarters
# left the prediction as often outside of what was measured as six tenths did, and brought it from 5.5 to 3.5 % below
# the highest in the median. What goes higher belongs to the range.
TYPICAL = 0.6
TYPICAL_OF_SEVERAL = 0.75

# Ops that bring a batch, and how many batches more the pool may hold than the one that is worked on.
BATCHES = {"IteratorGetNext"}
MOST_BATCHES = 4

# What happened in the likely plays is kept, so that those that are shown need not be played again; one event takes
# some 130 bytes.
KEPT_EVENTS = 500_000

# Later steps are not all alike: where an update copies a variable, its memory changes places from step to step, and the
# holes between tensors drift with it. What comes after training depends on how many there were, so a part of the plays
# has one more.
STEADY_STEPS = 8

# In loops the executor learns which kernels are cheap; later steps are looked at after it has done so for so many.
LEARNING_STEPS = 20


@dataclass(frozen=True)
class Further:
    """A phase after training: its name, one step of it, and what a prediction keeps of its batches."""

    phase: str
    program: Program
    accumulated: Accumulated | None = None


@dataclass(frozen=True)
class Run:
    """Everything that happens in a run, before memory is laid out.

    Attributes:
        built: the variables that building and compiling the model creates, in order; None when that is not known.
        slots: the variables that the first step creates, in order.
        others: variables that exist before, in order.
        program: one step of training; None where nothing is trained.
        parts: for each of its nodes, which part of the step it belongs to.
        further: phases that come after training.
        kept_by_trace: how many small tensors each trace of the step of training keeps.
        is_sent: whether the first of several workers sends the slots' first values to the others.
        values: what variables hold before the first step, as far as it is known.
        building: what the code that builds the model makes besides variables.
        computed: what layers compute when they are saved.
    """

    built: Sequence[Birth] | None
    slots: Sequence[Birth]
    others: Sequence[Birth]
    program: Program | None
    parts: Sequence[str]
    further: Sequence[Further] = ()
    kept_by_trace: int = 0
    is_sent: bool = False
    values: Mapping[Variable, Value] = field(default_factory=dict)
    building: EagerRun = field(default_factory=EagerRun)
    computed: Sequence[Computed] = ()

    @property
    def store(self) -> VariableStore:
        """Where variables are kept, before there are any."""
        return VariableStore(values=dict(self.values))


def phases_of(run: Run, device: Device) -> tuple[dict[str, Phase], int]:
    """The phases of `run` on `device`, in order, and the bytes of all variables.

    Every order that can happen is played. The peak of a phase is the one that a typical share of the likely plays stays
    within, and its range goes from the lowest to the highest of all.
    """
    likely, possible = _plays(run, device)
    if run.is_sent:
        possible += [replace(play, arrival=number) for number, play in enumerate(likely)]
    outlines: list[_Outline] = []
    room = KEPT_EVENTS
    for number, play in enumerate([*likely, *possible]):
        outlines.append(_outline(run, device, play, room if number < len(likely) else 0))
        room -= outlines[-1].kept_events
    typical = TYPICAL_OF_SEVERAL if device.threads > 1 else TYPICAL
    programs = {one.phase: one.program for one in run.further}
    if run.program is not None:
        programs |= {"first_step": run.program, "step": run.program}
    around = {name: _small_bytes(program) for name, program in programs.items()} if device.kind == CPU else {}
    names = ("build", "first_step", "step", *(one.phase for one in run.further), CHECKPOINT)
    chosen: dict[str, tuple[int, int]] = {}
    for name in names:
        moments = [
            (peak, number, step)
            for number, outline in enumerate(outlines[: len(likely)])
            for step, peak in enumerate(outline.peaks.get(name, ()))
            # Of steps of several kinds the one that takes most has to fit.
            if name not in outline.differing or peak == max(outline.peaks[name])
        ]
        if not moments:
            continue
        moments.sort()
        _, number, step = moments[math.ceil(typical * len(moments)) - 1]
        chosen[name] = number, step
    shown: dict[str, tuple[Played, int]] = {}
    for number in {number for number, _ in chosen.values()}:
        stretches = outlines[number].stretches or _stretches(run, device, likely[number], run.store)
        steps = {name: step for name, (own, step) in chosen.items() if own == number}
        shown.update(_play(run, device, stretches, steps))
    phases = {}
    for name in chosen:
        played, without_scratch = shown[name]
        peaks = [peak for outline in outlines for peak in outline.peaks[name]]
        phases[name] = replace(
            played.phase(name),
            peak_without_scratch_bytes=without_scratch,
            peak_range=(min(peaks) - around.get(name, 0), max(peaks) + around.get(name, 0)),
        )
    return phases, outlines[0].resident_bytes


def _small_bytes(program: Program) -> int:
    """Bytes of all tensors that take one chunk: on a CPU how many of them are there at a peak is chance.

    So it is with as small ones of the data pipeline and of the runtime itself, which lie in the same pool.
    """
    return ROUNDING * sum(0 < output.bytes <= ROUNDING for node in program.graph.nodes for output in node.outputs)


@dataclass(frozen=True)
class _Outline:
    """The peaks of one order: of each phase, and of each of several steady steps; in which of them steps differ.

    Attributes:
        peaks: by phase, the peaks of its stretches.
        differing: the phases whose stretches do not all do the same.
        resident_bytes: bytes of all variables.
        stretches: all that happens; empty where that would be too much to keep.
    """

    peaks: dict[str, list[int]]
    differing: set[str]
    resident_bytes: int
    stretches: Sequence[_Stretch]

    @property
    def kept_events(self) -> int:
        """How many events it keeps."""
        return sum(len(stretch.events) for stretch in self.stretches if not stretch.again)


@dataclass(frozen=True)
class _Stretch:
    """One phase, or one of the steady steps, as events.

    Attributes:
        phase: its name; empty for what happens between phases.
        events: what happens.
        step_begins: where the step itself begins, if there is one.
        renamed: buffers that go by other names from its beginning on.
        beside: sizes of tensors that are there from its beginning on and not counted.
        alike: whether all such stretches do the same.
        again: whether the same events have just been played.
    """

    phase: str
    events: list[Event]
    step_begins: int | None = None
    renamed: dict[Buffer, Buffer] = field(default_factory=dict)
    beside: Sequence[int] = ()
    alike: bool = True
    again: bool = False

    def peak_in(self, memory: Memory) -> int:
        """Plays it in `memory` and returns the peak in bytes."""
        if self.again:
            return memory.peak_again(self.events, self.renamed)
        self.begin_in(memory)
        return memory.peak_of(self.events)

    def begin_in(self, memory: Memory) -> None:
        """Makes `memory` ready for its events."""
        memory.rename(self.renamed)
        memory.occupy(self.beside)


@dataclass(frozen=True)
class _Orders:
    """The orders of a run's steps: makes the next one, and what they learn about kernels."""

    next: Callable[[], Order]
    learnt: Learnt | None = None

    @property
    def state(self) -> frozenset[int]:
        """What is known by now to be cheap."""
        return self.learnt.cheap if self.learnt is not None else frozenset()


@dataclass(frozen=True)
class _Way:
    """One way in which the steps of a program can go.

    Attributes:
        orders: makes what decides what runs next: a new one for each step, of those of a run that begins anew.
        edges: what leads where in the executor's graph.
    """

    orders: Callable[[], _Orders]
    edges: Edges


@dataclass(frozen=True)
class _Play:
    """One way in which a run can go.

    Attributes:
        ways: those of its programs, in order.
        beside: sizes of tensors that lie in the pool beside the run and are not counted: what decides which chunks
            are free, and so how much of one a tensor leaves unused.
        arrival: seed of the order in which the slots' first values arrive, on a worker that gets them from the first;
            None on that one.
        more_steps: how many steps more than others it has.
    """

    ways: Sequence[_Way]
    beside: Sequence[int] = ()
    arrival: int | None = None
    more_steps: int = 0


def _outline(run: Run, device: Device, play: _Play, room: int) -> _Outline:
    """Plays a run for its peaks, and keeps up to `room` events."""
    memory = Memory(BfcAllocator(device.pool))
    kept: list[_Stretch] = []
    store = run.store
    peaks: dict[str, list[int]] = {}
    differing: set[str] = set()
    for stretch in _stretches(run, device, play, store):
        check_deadline()
        if not stretch.alike:
            differing.add(stretch.phase)
        peak = stretch.peak_in(memory)
        if stretch.phase:
            peaks.setdefault(stretch.phase, []).append(peak)
        room -= 0 if stretch.again else len(stretch.events)
        kept.append(stretch)
        if room < 0:
            kept.clear()
    return _Outline(peaks, differing, resident_bytes(list(store.buffers.values())), kept)


def _play(
    run: Run, device: Device, stretches: Iterable[_Stretch], steps: Mapping[str, int]
) -> Iterator[tuple[str, tuple[Played, int]]]:
    """Plays a run, of some phases one stretch in full.

    Args:
        run: the run.
        device: what it runs on.
        stretches: the way in which it goes.
        steps: for each of those phases, which of its stretches.

    Yields:
        The name of each of those phases, and that stretch with its peak if no kernel used scratch.
    """
    memory = Memory(BfcAllocator(device.pool))
    lean = Memory(BfcAllocator(device.pool), with_scratch=False)
    waiting = dict(steps)
    for stretch in stretches:
        without_scratch = stretch.peak_in(lean)
        step = waiting.get(stretch.phase)
        if step != 0:
            stretch.peak_in(memory)
            if step is not None:
                waiting[stretch.phase] = step - 1
            continue
        stretch.begin_in(memory)
        yield stretch.phase, (memory.play(stretch.events, _spans(run, stretch)), without_scratch)
        del waiting[stretch.phase]
        if not waiting:
            return
    raise AssertionError(f"There are no such stretches: {waiting}.")


def _stretches(run: Run, device: Device, play: _Play, store: VariableStore) -> Iterator[_Stretch]:
    left: list[Event] = []
    if run.built is not None:
        events, left = building_events(run.built, run.building, store, handles=device.kind == CPU)
        yield _Stretch("build", events)
    yield _Stretch("", left + birth_events(run.others, store, handles=device.kind == CPU))
    ways = iter(play.ways)
    if run.program is not None:
        yield from _trained(run, device, run.program, play, next(ways), store)
    for one, way in zip(run.further, ways, strict=True):
        first, orders = one.program.constant_events(), way.orders()
        for before in (first, []):
            events, begins = _step(one.program, orders, way, store), 0
            if one.accumulated is not None:
                events, begins = one.accumulated.around(events)
            yield _Stretch(one.phase, before + events, len(before) + begins)
        # The batch that it was called with is nobody's any more.
        yield _Stretch("", [Event(FREE, buffer, END_OF_STEP) for buffer in one.program.fed])
    yield _Stretch(CHECKPOINT, reading_events(store, run.computed))


def _step(program: Program, orders: _Orders, way: _Way, store: VariableStore) -> list[Event]:
    if orders.learnt is not None:
        orders.learnt.begin()
    return Execution(program, orders.next(), store, edges=way.edges).run()


def _trained(
    run: Run, device: Device, program: Program, play: _Play, way: _Way, store: VariableStore
) -> Iterator[_Stretch]:
    orders = way.orders()
    step = functools.partial(_step, program, orders, way, store)
    on_the_host = device.kind == CPU
    if run.is_sent:
        slots = sent_birth_events(run.slots, store, arrival=play.arrival, on_the_host=on_the_host)
    else:
        slots = shared_birth_events(run.slots, store, on_the_host=on_the_host)
    # A function that creates variables is traced a second time for all further calls.
    traces = trace_events(run.kept_by_trace * (2 if run.slots else 1))
    yield _Stretch("", _on_the_host(device, traces))
    first = [*slots, *_on_the_host(device, list(_folding_events(program))), *program.constant_events()]
    before, state = dict(store.buffers), (store.sharing, orders.state)
    kinds = kinds_of_steps(program.graph, program.plan, store.values)
    events = step()
    yield _Stretch("first_step", first + events, len(first), beside=play.beside)
    later = STEADY_STEPS + play.more_steps
    for number in range(1, 1 + max(later, len(kinds))) if len(kinds) > 1 else ():
        if max(kinds) > STEADY_STEPS:
            # Steps between those are like others that are played.
            store.values = dict([*kinds.values()][number % len(kinds)])
        yield _Stretch("step", step(), 0, alike=False)
    if orders.learnt is not None:
        orders.learnt.again(LEARNING_STEPS)
    for _ in range(later) if len(kinds) == 1 else ():
        if (store.sharing, orders.state) != state:
            before, state = dict(store.buffers), (store.sharing, orders.state)
            events = step()
            yield _Stretch("step", events, 0)
        else:
            if orders.learnt is not None:
                orders.learnt.again()
            # The same happens as in the step before; only where in memory the variables lie is another matter.
            moved = {held: before[variable] for variable, held in store.buffers.items() if held is not before[variable]}
            yield _Stretch("step", events, 0, moved, again=True)


def _plays(run: Run, device: Device) -> tuple[list[_Play], list[_Play]]:
    """The ways of a run that are likely, and others that are possible."""
    programs = [*([run.program] if run.program is not None else []), *(one.program for one in run.further)]
    batch = [output.bytes for node in programs[0].graph.nodes if node.op in BATCHES for output in node.outputs]
    # A graph of many thousand ops has many small peaks instead of one that chance decides; it needs fewer plays.
    count = max(FEWEST_VARIATIONS, min(VARIATIONS, PLAYED_OPS // trial_of(programs[0]).ops))
    found = [_ways(program, device, count) for program in programs]
    likely = [
        _Play(
            [ways[number] for ways, _ in found],
            # On a CPU the pool holds what the data pipeline has ready, too.
            beside=[size for size in batch if size] * (number % MOST_BATCHES) if device.kind == CPU else (),
            more_steps=number // 2 % 2,
        )
        for number in range(count)
    ]
    others = max(len(ways) for _, ways in found)
    possible = [_Play([ways[min(number, len(ways) - 1)] for _, ways in found]) for number in range(others)]
    return likely, possible


def _ways(program: Program, device: Device, count: int) -> tuple[list[_Way], list[_Way]]:
    """So many likely ways of the steps of a program, and others that are possible."""
    graph = program.graph
    costs = [seconds(graph, index) for index in range(len(graph.nodes))]
    ops = ["Const" if is_made_once(graph, node) else node.op for node in graph.nodes]
    loops = bool(program.plan.loops)

    def pool(threads: int, seed: int, delay: float = 1.0, *, learns: bool = False) -> Callable[[], _Orders]:
        # Kernels run faster or slower than thought, so which of two threads is done first varies. Two of a kind that
        # run side by side take about as long as each other all the same.
        chance, of_kinds = random.Random(seed), random.Random(f"kinds {seed}")
        spread = math.log(max(delay, LARGEST_FACTOR if loops else SMALL_FACTOR))
        widest = 0.0 if loops else math.log(LARGEST_FACTOR)
        kinds = {op: math.exp(of_kinds.uniform(-widest, widest)) for op in dict.fromkeys(ops)}
        varied = [
            cost if seed == 0 else cost * kinds[op] * math.exp(chance.uniform(-spread, spread))
            for op, cost in zip(ops, costs, strict=True)
        ]
        pace = 1.0 if seed == 0 else math.exp(chance.uniform(-1, 1) * math.log(LARGEST_PACE))

        def orders() -> _Orders:
            learnt = Learnt(lambda index: pace * cycles(graph, index)) if learns else None
            return _Orders(lambda: PoolOrder(threads, ops.__getitem__, varied.__getitem__, learnt), learnt)

        return orders

    def inline() -> _Orders:
        return _Orders(InlineOrder)

    @functools.cache
    def edges_for(seed: int) -> Edges:
        onednn = device.onednn and device.kind == CPU
        return executor_edges(graph, onednn=onednn, seed=seed, plain=program.plan.edges)

    def way(orders: Callable[[], _Orders], seed: int) -> _Way:
        return _Way(orders, edges_for(seed))

    if device.kind == GPU:
        return [way(inline, seed) for seed in range(count)], []
    likely = [way(pool(device.threads, seed, learns=loops), seed) for seed in range(count)]
    possible = [way(inline, 0)] if device.threads == 1 else [way(pool(1, 0), 0), way(inline, 0)]
    if device.threads > 1:
        possible += [way(pool(device.threads, seed, LARGEST_DELAY, learns=loops), seed) for seed in DELAYED]
    if loops:
        # How soon small kernels are taken for cheap ones depends on what else the machine does, down to never.
        possible += [way(pool(device.threads, seed), seed) for seed in range(2)]
    return likely, possible


def _on_the_host(device: Device, events: list[Event]) -> list[Event]:
    """What happens in the host's memory, if that is the device's."""
    return events if device.kind == CPU else []


def _folding_events(program: Program) -> Iterator[Event]:
    """What computing constants ahead, on the host, takes for a while: never more than two of them."""
    for node, tags in zip(program.graph.nodes, program.tags, strict=True):
        if is_folded(node):
            first, second = (Buffer(node.outputs[0].bytes) for _ in range(2))
            for buffer in (first, second):
                yield Event(ALLOCATE, buffer, node.name, tags[0])
            for buffer in (first, second):
                yield Event(FREE, buffer, node.name)


def _spans(run: Run, stretch: _Stretch) -> list[tuple[str, int, int]]:
    """Where the parts of a step lie: forward until the backward pass begins (`_turn`), update from its first op on."""
    if stretch.step_begins is None or run.program is None:
        return []
    parts = {node.name: part for node, part in zip(run.program.graph.nodes, run.parts, strict=True)}
    positions: dict[str, list[int]] = {FORWARD: [], BACKWARD: [], UPDATE: []}
    part = FORWARD
    for position, event in enumerate(stretch.events[stretch.step_begins :], stretch.step_begins):
        # What happens inside a loop belongs where the loop does.
        part = parts.get(event.op, part)
        # The update's step counts and learning rates come early; it begins where it makes something for a weight.
        if part != UPDATE or (event.tag is not None and event.tag.variable is not None and event.tag.shape):
            positions[part].append(position)
    turn = _turn(stretch.events, positions[FORWARD], positions[BACKWARD])
    positions[FORWARD] = [position for position in positions[FORWARD] if position < turn]
    positions[BACKWARD] = [position for position in positions[BACKWARD] if position >= turn]
    return [(part, found[0], found[-1] + 1) for part, found in positions.items() if found]


def _turn(events: Sequence[Event], forward: list[int], backward: list[int]) -> int:
    """Where the backward pass begins: most that the forward pass allocates is before, most of the backward pass after.

    Its first op does not tell: gradients need some small things that wait for nothing of the forward pass.
    """
    passes = sorted([(position, 1) for position in forward] + [(position, -1) for position in backward])
    most, best, balance = 0, -1, 0
    for position, sign in passes:
        if events[position].kind == ALLOCATE:
            balance += sign * events[position].buffer.bytes
        if balance > most:
            most, best = balance, position
    return next((position for position in backward if position > best), len(events))
