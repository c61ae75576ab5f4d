"""The phases of a training whose step runs as a graph, op by op."""

from __future__ import annotations

from collections.abc import Callable

from tensorboard_plugin_memest.estimation.attribution import Attribution
from tensorboard_plugin_memest.estimation.device import CPU, Device
from tensorboard_plugin_memest.estimation.graph import optimized_graph
from tensorboard_plugin_memest.estimation.phases import Run, phases_of
from tensorboard_plugin_memest.estimation.places import keep_places
from tensorboard_plugin_memest.estimation.program import program_of
from tensorboard_plugin_memest.estimation.training import Training
from tensorboard_plugin_memest.estimation.workspace.catalogue import workspace_notes
from tensorboard_plugin_memest.memory.estimate import Phase


def phases_of_graph(
    training: Training, device: Device, adjust: Callable[[Attribution], None] | None = None
) -> tuple[dict[str, Phase], int, list[str]]:
    """The phases, the bytes of all variables, and what had to be assumed.

    Args:
        training: one that was traced.
        device: what it would run on.
        adjust: changes the graph before it is played; None to leave it.
    """
    trace = training.trace
    graph = optimized_graph(training.step, trace.handles, device.kind, training.batch_size)
    if device.kind == CPU and device.onednn:
        keep_places(graph)
    attribution = Attribution(graph, trace.owners)
    if adjust is not None:
        adjust(attribution)
    program, program_notes = program_of(attribution, device)
    born = {birth.variable for birth in [*(training.built or []), *training.slots]}
    run = Run(
        built=training.built,
        slots=training.slots,
        others=[variable for variable in trace.variables.all if variable not in born],
        program=program,
        parts=attribution.parts,
    )
    phases, resident = phases_of(run, device)
    unknown = [
        f"The size of {name!r} ({trace.owners.find(name).layer}) is not known before the run; it was not counted."
        for name in graph.unknown
    ]
    assumed = [
        f"The first dimension of some tensors of {layer} is only known in the run; it was taken for the batch, "
        f"{training.batch_size}."
        for layer in dict.fromkeys(trace.owners.find(name).layer for name in graph.assumed)
    ]
    return phases, resident, [*program_notes, *unknown, *assumed, *workspace_notes(device)]
