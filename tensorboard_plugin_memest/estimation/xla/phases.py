"""The phases of a run whose step is one compiled program.

TensorFlow gives a compiled step its arguments, asks the allocator for everything else at once, and gives back what is
not returned when it is over. A variable whose memory nobody else holds is updated in place. In the first step of `fit`
slots with equal first values share one piece of memory, because Grappler computes them once; those that are updated
then get memory of their own, beside the old.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tensorboard_plugin_memest.estimation.accumulated import Accumulated
from tensorboard_plugin_memest.estimation.allocator import BfcAllocator
from tensorboard_plugin_memest.estimation.attribution import BACKWARD, UPDATE
from tensorboard_plugin_memest.estimation.births import Birth, birth_events, building_events, shared_birth_events
from tensorboard_plugin_memest.estimation.computed import Computed
from tensorboard_plugin_memest.estimation.device import CPU, Device
from tensorboard_plugin_memest.estimation.eager import EagerRun
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.replay import Memory, Played, resident_bytes
from tensorboard_plugin_memest.estimation.saved import CHECKPOINT, reading_events
from tensorboard_plugin_memest.estimation.tag import Tag, variable_tag
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tensorboard_plugin_memest.estimation.variables import INPUT, STEP, Variable, size_in_bytes
from tensorboard_plugin_memest.estimation.xla.attribution import ModuleAttribution
from tensorboard_plugin_memest.estimation.xla.module import Allocation, Module
from tensorboard_plugin_memest.estimation.xla.request import FEED, TENSOR, Argument
from tensorboard_plugin_memest.memory.allocations import Allocations
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.item import FIRST_VALUE, RESULT, RESULT_ADDRESSES, Item
from tensorboard_plugin_memest.memory.timeline import END_OF_STEP, Span, Timeline

# Later steps are alike once the allocator's chunks have found their places.
STEADY_STEPS = 2

_UNUSED = "XLA's temporary memory, unused part"


@dataclass(frozen=True)
class CompiledStep:
    """A step as it was compiled.

    Attributes:
        module: what XLA made of it.
        attribution: whose its values are.
        arguments: its parameters.
        variables: for each parameter the variable that it is; None for tensors.
    """

    module: Module
    attribution: ModuleAttribution
    arguments: Sequence[Argument]
    variables: Sequence[Variable | None]


@dataclass(frozen=True)
class FurtherStep:
    """A phase after training: its name, one step of it, and what a prediction keeps of its batches."""

    phase: str
    step: CompiledStep
    accumulated: Accumulated | None = None


@dataclass(frozen=True)
class CompiledRun:
    """Everything that happens in a run of a compiled step, before memory is laid out.

    Attributes:
        built: the variables that building and compiling the model creates, in order; None when that is not known.
        slots: the variables that the first step creates, in order.
        others: variables that exist before, in order.
        step: one step of training; None where nothing is trained.
        further: phases that come after training.
        building: what the code that builds the model makes besides variables.
        computed: what layers compute when they are saved.
    """

    built: Sequence[Birth] | None
    slots: Sequence[Birth]
    others: Sequence[Birth]
    step: CompiledStep | None
    further: Sequence[FurtherStep] = ()
    building: EagerRun = field(default_factory=EagerRun)
    computed: Sequence[Computed] = ()


@dataclass(frozen=True)
class _Stretch:
    """One phase as events; `block` is the temporary memory whose inside can be shown while it is there."""

    phase: str
    events: list[Event]
    block: tuple[Buffer, Allocation, ModuleAttribution] | None = None


def phases_of(run: CompiledRun, device: Device) -> tuple[dict[str, Phase], int]:
    """The phases of `run` on `device`, in order, and the bytes of all variables."""
    memory = Memory(BfcAllocator(device.pool))
    store = VariableStore()
    phases = {}
    for stretch in _stretches(run, device, store):
        played = memory.play(stretch.events)
        if not stretch.phase:
            continue
        if stretch.block is not None:
            played = _opened(played, stretch, *stretch.block)
        phases[stretch.phase] = played.phase(stretch.phase)
    return phases, resident_bytes(list(dict.fromkeys(store.buffers.values())))


def _stretches(run: CompiledRun, device: Device, store: VariableStore) -> Iterator[_Stretch]:
    left: list[Event] = []
    if run.built is not None:
        events, left = building_events(run.built, run.building, store, handles=device.kind == CPU)
        yield _Stretch("build", events)
    yield _Stretch("", left + birth_events(run.others, store, handles=device.kind == CPU))
    if run.step is not None:
        yield _Stretch("", _tensors(run.step))
        slots = shared_birth_events(run.slots, store, on_the_host=device.kind == CPU)
        yield _step("first_step", run.step, store, slots)
        for _ in range(STEADY_STEPS):
            yield _step("step", run.step, store, [])
    for one in run.further:
        for before in (_tensors(one.step), []):
            stretch = _step(one.phase, one.step, store, before)
            if one.accumulated is not None:
                stretch = replace(stretch, events=one.accumulated.around(stretch.events)[0])
            yield stretch
    yield _Stretch(CHECKPOINT, reading_events(store, run.computed))


def _tensors(step: CompiledStep) -> list[Event]:
    """Tensors that a layer holds are there all the time."""
    return [
        Event(ALLOCATE, Buffer(size, references=1, is_resident=True), argument.name, _tag_of_tensor(argument))
        for argument in step.arguments
        if argument.kind == TENSOR and (size := size_in_bytes(argument.shape, argument.dtype))
    ]


def _tag_of_tensor(argument: Argument) -> Tag:
    role = "tensor kept by the layer"
    return Tag(STEP, argument.name, Category.CONSTANTS, role, None, argument.shape, argument.dtype)


def _step(phase: str, step: CompiledStep, store: VariableStore, before: list[Event]) -> _Stretch:
    events = list(before)
    given: list[Event] = []
    for argument in step.arguments:
        size = size_in_bytes(argument.shape, argument.dtype)
        if argument.kind == FEED and size:
            tag = Tag(INPUT, argument.name, Category.INPUTS, "batch", None, argument.shape, argument.dtype)
            given.append(Event(ALLOCATE, Buffer(size), argument.name, tag))
    requested: list[tuple[Event, Allocation]] = []
    for number, allocation in enumerate(step.module.allocations):
        tag = _tag_of(allocation, number, step)
        requested.append((Event(ALLOCATE, Buffer(allocation.bytes), tag.name, tag), allocation))
    relabelled, copied, released = _updates(step, store)
    events += [*given, *relabelled, *(event for event, _ in requested), *copied]
    temporary = [(event.buffer, allocation) for event, allocation in requested if not allocation.is_output]
    events += [Event(FREE, buffer, END_OF_STEP) for buffer, _ in temporary]
    events += released
    events += [Event(FREE, event.buffer, event.op) for event in given]
    events += [Event(FREE, event.buffer, event.op) for event, allocation in requested if allocation.is_output]
    # The largest is the one to look into; nearly always there is only one.
    block = max((one for one in temporary if one[1].trace), key=lambda one: one[1].bytes, default=None)
    return _Stretch(phase, events, (*block, step.attribution) if block else None)


def _tag_of(allocation: Allocation, number: int, step: CompiledStep) -> Tag:
    largest = max(allocation.values, key=lambda value: value.bytes, default=None)
    if largest is None or (not allocation.is_output and len(allocation.values) > 1):
        return Tag(STEP, f"XLA's temporary memory {number}", Category.TEMPORARIES, "temporary memory", None, None, None)
    tag = step.attribution.tag(largest)
    if not allocation.is_output:
        return tag
    if largest.dtype is None:
        return Tag(STEP, tag.name, Category.TEMPORARIES, RESULT_ADDRESSES, None, None, None)
    return replace(tag, category=Category.TEMPORARIES, role=RESULT, variable=None)


def _updates(step: CompiledStep, store: VariableStore) -> tuple[list[Event], list[Event], list[Event]]:
    """What becomes of variables that cannot be updated in place.

    Returns:
        New labels for the values that are about to go, memory for the new values, and the end of the old.
    """
    first_value: dict[Buffer, Tag] = {}
    copied: list[Event] = []
    released: list[Event] = []
    for number in step.module.updated:
        variable = step.variables[number]
        if variable is None:
            continue
        held = store.buffers[variable]
        if held.references == 1:
            continue
        fresh = Buffer(variable.bytes, references=1, is_resident=True)
        copied.append(Event(ALLOCATE, fresh, variable.name, variable_tag(variable)))
        store.buffers[variable] = fresh
        released.append(Event(FREE, held, variable.name))
        first = variable_tag(variable)
        name = f"{variable.weight or variable.name} (first value of its slots)"
        first_value.setdefault(held, replace(first, name=name, role=FIRST_VALUE))
    # All arguments are looked at before any new value takes its variable's place.
    last: list[Event] = []
    relabelled: list[Event] = []
    for event in released:
        event.buffer.references -= 1
        if event.buffer.references == 0:
            last.append(event)
            relabelled.append(Event(RELABEL, event.buffer, event.op, first_value[event.buffer]))
    return relabelled, copied, last


def _opened(
    played: Played, stretch: _Stretch, block: Buffer, allocation: Allocation, attribution: ModuleAttribution
) -> Played:
    """The same with the temporary memory taken apart: what lies in it from when to when, and what of it lies idle.

    The allocator counts the whole block as long as the step runs. Here the curve shows what is used of it, above the
    part that never is; at the highest moment both are the same.
    """
    live, highest = 0, 0
    for value, is_begin in allocation.trace:
        live += value.bytes if is_begin else -value.bytes
        highest = max(highest, live)
    begun = next(number for number, event in enumerate(stretch.events) if event.buffer is block)
    ended = next(number for number, event in enumerate(stretch.events) if event.buffer is block and event.kind == FREE)
    timeline = played.timeline
    # Of several batches it is the last one's.
    closes = timeline.ticks.index(ended + 1)
    whole = next(one for one in played.allocations if one[0].name == stretch.events[begun].op and one[2] == closes)
    idle = whole[0].bytes - highest
    if idle < 0:
        return played
    tags = {id(value): attribution.tag(value) for value, _ in allocation.trace}
    ticks, lives, ops, names = [0], [timeline.live_bytes[0]], [0], list(timeline.ops)
    # Where the events of the timeline have gone, and what lies in the block from where to where.
    moved = [0]
    opened: dict[int, tuple[Item, int]] = {}
    inside: list[tuple[Item, int, int]] = []
    begins: dict[str, int] = {}
    numbers = {name: number for number, name in enumerate(names)}
    for tick, amount, op in zip(timeline.ticks[1:], timeline.live_bytes[1:], timeline.op_index[1:], strict=True):
        if begun < tick <= ended:
            amount -= highest
        if tick == ended + 1:
            used = lives[-1]
            for value, is_begin in allocation.trace:
                used += value.bytes if is_begin else -value.bytes
                tag = tags[id(value)]
                part = attribution.part_of(value)
                # What the update needs of its own comes early: learning rates and counts of steps.
                if is_begin and part != UPDATE:
                    begins.setdefault(part, len(ticks))
                if not is_begin and part == BACKWARD:
                    begins[UPDATE] = len(ticks)
                if is_begin:
                    opened[id(value)] = tag.item(value.bytes, value.bytes), len(ticks)
                else:
                    inside.append((*opened.pop(id(value)), len(ticks)))
                ticks.append(ticks[-1] + 1)
                lives.append(used)
                ops.append(numbers.setdefault(tag.name, len(numbers)))
            inside += [(*left, len(ticks)) for left in opened.values()]
        moved.append(len(ticks))
        ticks.append(ticks[-1] + 1)
        lives.append(amount)
        ops.append(op)
    moved.append(len(ticks))
    for one in played.allocations:
        item, begin, end = one
        if one != whole:
            inside.append((item, moved[begin], moved[end]))
        elif idle:
            requested = max(0, allocation.bytes - highest)
            unused = Tag(STEP, _UNUSED, Category.TEMPORARIES, "unused", None, None, None).item(requested, idle)
            inside.append((unused, moved[begin], moved[end]))
    allocations, peak, names = Allocations.of(inside), lives.index(max(lives)), list(numbers)
    return replace(
        played,
        peak_op=names[ops[peak]],
        live_at_peak=allocations.items_at(peak),
        timeline=Timeline("op", ticks, lives, ops, names, _spans(begins, len(ticks))),
        # Of the values of a fusion only the first is asked for.
        owners={**{tag.name: tag.whose for tag in reversed(tags.values())}, **played.owners},
        allocations=allocations,
    )


def _spans(begins: dict[str, int], end: int) -> list[Span]:
    starts = sorted((start, part) for part, start in begins.items())
    ends = [*(start for start, _ in starts[1:]), end]
    return [Span(part, start, end) for (start, part), end in zip(starts, ends, strict=True) if start < end]
