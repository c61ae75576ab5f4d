"""The phases of a training whose steps run eagerly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tensorboard_plugin_memest.estimation.allocator import BfcAllocator
from tensorboard_plugin_memest.estimation.births import birth_events, building_events
from tensorboard_plugin_memest.estimation.device import CPU, Device
from tensorboard_plugin_memest.estimation.eager_execution import EagerExecution, EagerPlan
from tensorboard_plugin_memest.estimation.events import Buffer, Event
from tensorboard_plugin_memest.estimation.phases import TYPICAL
from tensorboard_plugin_memest.estimation.replay import Memory, resident_bytes
from tensorboard_plugin_memest.estimation.saved import CHECKPOINT, reading_events
from tensorboard_plugin_memest.estimation.training import Training
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tensorboard_plugin_memest.estimation.variables import size_in_bytes
from tensorboard_plugin_memest.estimation.workspace.catalogue import workspace_notes, workspaces_of
from tensorboard_plugin_memest.memory.estimate import Phase

_NOTE = "Eager steps were followed op by op, with tensors held as long as Python and the gradient tape hold them."

# Updates that give variables other memory make steps differ from one to the next, and what comes after training depends
# on how many later ones there were. What the data pipeline has ready in the same pool decides which chunks are free,
# too: a run is likely to go as without, and possible are batches beside it.
_LATER_STEPS = (4, 5)
_BATCHES_BESIDE = (0, 1, 3)


def phases_of_eager(training: Training, device: Device) -> tuple[dict[str, Phase], int, list[str]]:
    """The phases, the bytes of all variables, and what had to be assumed."""
    plans = [
        EagerPlan(
            one,
            training.trace.variables,
            {one.graph.nodes[index].name: found for index, found in workspaces_of(one.graph, device).items()},
        )
        for one in training.eager_steps
    ]
    plays = list(itertools.product(_BATCHES_BESIDE if device.kind == CPU else (0,), _LATER_STEPS))
    moments: dict[str, list[tuple[int, tuple[int, int], int]]] = {}
    for play in plays:
        memory, store = Memory(BfcAllocator(device.pool)), VariableStore()
        for number, stretch in enumerate(_stretches(training, plans, device, play, store)):
            memory.occupy(stretch.beside)
            peak = memory.peak_of(stretch.events)
            if stretch.phase:
                moments.setdefault(stretch.phase, []).append((peak, play, number))
    chosen = {}
    for name, found in moments.items():
        likely = sorted(moment for moment in found if moment[1] in plays[: len(_LATER_STEPS)])
        _, play, number = likely[math.ceil(TYPICAL * len(likely)) - 1]
        chosen[play, number] = name, (min(found)[0], max(found)[0])
    phases = {}
    for play in plays[: len(_LATER_STEPS)]:
        memory, lean = Memory(BfcAllocator(device.pool)), Memory(BfcAllocator(device.pool))
        for number, stretch in enumerate(_stretches(training, plans, device, play, VariableStore())):
            for one in (memory, lean):
                one.occupy(stretch.beside)
            without_scratch = lean.peak_of([event for event in stretch.events if not event.buffer.is_scratch])
            if (play, number) not in chosen:
                memory.peak_of(stretch.events)
                continue
            name, ends = chosen[play, number]
            phases[name] = replace(
                memory.play(stretch.events).phase(name), peak_without_scratch_bytes=without_scratch, peak_range=ends
            )
    notes = [note for plan in plans for note in plan.step.assumptions]
    return (
        {name: phases[name] for name in moments},
        resident_bytes(list(store.buffers.values())),
        [_NOTE, *notes, *workspace_notes(device)],
    )


@dataclass(frozen=True)
class _Stretch:
    """What happens in a phase, or between phases if it has no name, and sizes of what lies beside it from then on."""

    phase: str
    events: list[Event]
    beside: Sequence[int] = ()


def _stretches(
    training: Training, plans: list[EagerPlan], device: Device, play: tuple[int, int], store: VariableStore
) -> Iterator[_Stretch]:
    """A run with so many batches beside it, and so many steps after the first."""
    batches, later = play
    handles = device.kind == CPU
    held: list[Event] = []
    if training.built is not None:
        events, held = building_events(training.built, training.building, store, handles=handles)
        yield _Stretch("build", events)
    yield _Stretch("", held + birth_events(training.others, store, handles=handles))
    left: dict[str, Buffer] = {}
    first = next((plan for plan in plans if plan.step.phase in ("first_step", "step")), None)
    for plan in plans:
        if plan is first:
            batch = [size_in_bytes(shape, dtype) for _, shape, dtype in plan.step.batch]
            events = EagerExecution(plan, store, left, is_first=True, handles=handles).run()
            yield _Stretch("first_step", events, batch * batches)
        phase = plan.step.phase
        for _ in range({"first_step": 0, "step": later}.get(phase, 2)):
            yield _Stretch(phase, EagerExecution(plan, store, left).run())
    yield _Stretch(CHECKPOINT, reading_events(store, training.computed))
