"""The phases of a training whose steps run eagerly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from tensorboard_plugin_memest.estimation.allocator import BfcAllocator
from tensorboard_plugin_memest.estimation.attribution import BACKWARD, FORWARD, UPDATE
from tensorboard_plugin_memest.estimation.births import birth_events, existing_events
from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.eager_step import EagerStep
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, Buffer, Event
from tensorboard_plugin_memest.estimation.execution import VariableStore
from tensorboard_plugin_memest.estimation.replay import Memory, resident_bytes
from tensorboard_plugin_memest.estimation.tag import Tag, workspace_tag
from tensorboard_plugin_memest.estimation.trace import GRADIENT_SCOPE
from tensorboard_plugin_memest.estimation.training import Training
from tensorboard_plugin_memest.estimation.variables import INPUT, OPTIMIZER, Variable, size_in_bytes
from tensorboard_plugin_memest.estimation.workspace.catalogue import workspace_notes, workspaces_of
from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Workspace
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.timeline import END_OF_STEP

_NOTE = "Eager steps were followed op by op, with tensors held as long as Python and the gradient tape hold them."


def phases_of_eager(training: Training, device: Device) -> tuple[dict[str, Phase], int, list[str]]:
    """The phases, the bytes of all variables, and what had to be assumed."""
    memory, lean = Memory(BfcAllocator(device.pool)), Memory(BfcAllocator(device.pool))
    store = VariableStore()
    weights = [variable for variable in training.trace.variables.all if variable.category is Category.WEIGHTS]
    stretches: list[tuple[str, list[Event]]] = []
    if training.built is not None:
        stretches.append(("build", birth_events(training.built, store)))
    stretches.append(("", [event for one in training.others for event in existing_events(one, store)]))
    copied: set[int] = set()
    for one in training.eager_steps:
        scratch = _workspaces(one, device)
        if one.phase == "step":
            slots = birth_events(training.slots, store)
            stretches.append(("first_step", _events(one, weights, scratch, copied, slots)))
        copied |= one.copied
        stretches += [(one.phase, _events(one, weights, scratch, copied)) for _ in range(2)]
    phases = {}
    for name, events in stretches:
        played = memory.play(events)
        without_scratch = lean.peak_of([event for event in events if not event.buffer.is_scratch])
        if name:
            phases[name] = replace(played.phase(name), peak_without_scratch_bytes=without_scratch)
    notes = [note for one in training.eager_steps for note in one.assumptions]
    return (
        phases,
        resident_bytes(list(store.buffers.values())),
        [
            _NOTE,
            *notes,
            *workspace_notes(device),
        ],
    )


def _workspaces(step: EagerStep, device: Device) -> dict[str, Workspace]:
    """What the kernels of some ops allocate for themselves, by the op's name."""
    return {step.graph.nodes[index].name: found for index, found in workspaces_of(step.graph, device).items()}


def _events(
    step: EagerStep,
    weights: Sequence[Variable],
    workspaces: Mapping[str, Workspace],
    copied: Set[int],
    slots: Sequence[Event] = (),
) -> list[Event]:
    """What a step does.

    Args:
        step: the step.
        weights: the model's weights.
        workspaces: what the kernels of some ops allocate for themselves, by the op's name.
        copied: ids of the handles of variables that are copied for every read.
        slots: what happens when the optimizer gets its first gradients.
    """
    events = []
    waiting = list(slots)
    for name, shape, dtype in step.batch:
        tag = Tag(INPUT, name, Category.INPUTS, "batch", None, shape, dtype)
        events.append(Event(ALLOCATE, Buffer(size_in_bytes(shape, dtype)), name, tag))
    fed = [event.buffer for event in events]
    parts = [_part(step, name) for name in step.names]
    kept = _kept(step, parts)
    buffers = [Buffer(made.bytes) for made in step.run.made]
    left = dict.fromkeys(range(len(buffers)))
    running = "(start)"
    for number, is_made in step.run.steps:
        if number in step.reads and step.reads[number] not in copied:
            left.pop(number, None)
            continue
        if is_made:
            running = step.names[number]
            if parts[number] == UPDATE:
                events += waiting
                waiting = []
            tag = _tag(step, number, parts[number], number in kept, weights)
            # An op's tensors are made one after another: its workspace is there while the first one is.
            is_first = number == 0 or step.names[number - 1] != running
            scratch = workspaces.get(running, NONE) if is_first else NONE
            before, after = ([Buffer(size, is_scratch=True) for size in s] for s in (scratch.before, scratch.after))
            used = workspace_tag(tag)
            events += [Event(ALLOCATE, buffer, running, used) for buffer in before]
            events.append(Event(ALLOCATE, buffers[number], running, tag))
            events += [Event(ALLOCATE, buffer, running, used) for buffer in after]
            events += [Event(FREE, buffer, running) for buffer in (*before, *after)]
        else:
            events.append(Event(FREE, buffers[number], running))
            del left[number]
    events += waiting
    events += [Event(FREE, buffers[number], END_OF_STEP) for number in left]
    events += [Event(FREE, buffer, END_OF_STEP) for buffer in fed]
    return events if step.accumulated is None else step.accumulated.around(events)[0]


def _part(step: EagerStep, name: str) -> str:
    if step.owners.find(name).is_update:
        return UPDATE
    return BACKWARD if GRADIENT_SCOPE in name else FORWARD


def _kept(step: EagerStep, parts: Sequence[str]) -> set[int]:
    """The forward tensors that are there when the backward pass begins."""
    alive: set[int] = set()
    for number, is_made in step.run.steps:
        if is_made and parts[number] == BACKWARD:
            return alive
        (alive.add if is_made else alive.discard)(number)
    return set()


def _tag(step: EagerStep, number: int, part: str, is_kept: bool, weights: Sequence[Variable]) -> Tag:
    made, name = step.run.made[number], step.names[number]
    layer, variable = step.owners.find(name).layer, None
    role = f"{made.op} output"
    category = Category.ACTIVATIONS if is_kept else Category.TEMPORARIES
    if number in step.reads:
        category, role = Category.TEMPORARIES, "copy of a variable, made to read it"
    elif part == UPDATE:
        layer, category, role = OPTIMIZER, Category.TEMPORARIES, "update temporary"
    elif part == BACKWARD:
        fit = [one for one in weights if one.layer == layer and one.shape == made.shape and one.trainable]
        category, role = Category.TEMPORARIES, f"{role}, backward"
        if len(fit) == 1:
            category, role, variable = Category.GRADIENTS, "gradient", fit[0].weight
    return Tag(layer, name, category, role, variable, made.shape, made.dtype)
