"""The phases of a training whose step runs as a graph, op by op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from tensorboard_plugin_memest.estimation.attribution import Attribution
from tensorboard_plugin_memest.estimation.deadline import check_deadline, wait_for
from tensorboard_plugin_memest.estimation.device import CPU, Device
from tensorboard_plugin_memest.estimation.folding import fold_constants
from tensorboard_plugin_memest.estimation.graph import (
    OptimizedStep,
    Sizes,
    StepGraph,
    Value,
    optimized_step,
    step_graph,
)
from tensorboard_plugin_memest.estimation.linked import program_of
from tensorboard_plugin_memest.estimation.onednn import merge_bias_gradients
from tensorboard_plugin_memest.estimation.phases import Further, Run, phases_of
from tensorboard_plugin_memest.estimation.places import keep_places
from tensorboard_plugin_memest.estimation.program import Program
from tensorboard_plugin_memest.estimation.small import kept_by_trace
from tensorboard_plugin_memest.estimation.training import Pass, Training
from tensorboard_plugin_memest.estimation.trial import sizes_in
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.estimation.workspace.catalogue import workspace_notes
from tensorboard_plugin_memest.memory.estimate import Phase


def begin_optimizing(training: Training, device: Device) -> list[Future[OptimizedStep]]:
    """Has Grappler optimize the steps of a training, one after another, in a thread that ends when it is done."""
    thread = ThreadPoolExecutor(1, "memest-grappler")
    begun = [thread.submit(optimized_step, one.step, one.handles, device.kind) for one in training.passes]
    thread.shutdown(wait=False)
    return begun


def phases_of_graph(
    training: Training,
    device: Device,
    adjust: Callable[[Attribution], None] | None = None,
    begun: Sequence[Future[OptimizedStep]] | None = None,
) -> tuple[dict[str, Phase], int, list[str]]:
    """The phases, the bytes of all variables, and what had to be assumed.

    Args:
        training: one that was traced.
        device: what it would run on.
        adjust: changes a graph before it is played; None to leave it.
        begun: its steps, being optimized; None to begin with that here.
    """
    notes: list[str] = []
    programs = []
    for one, optimized in zip(training.passes, begun or begin_optimizing(training, device), strict=True):
        graph = _sized_graph(one, wait_for(optimized), training.values)
        fold_constants(graph)
        if device.kind == CPU and device.onednn:
            keep_places(graph)
            merge_bias_gradients(graph)
        attribution = Attribution(graph, one.owners)
        if adjust is not None:
            adjust(attribution)
        program, program_notes = program_of(attribution, device, training.values)
        programs.append((one, program, attribution.parts))
        notes += [*one.assumptions, *program_notes, *_notes_on_sizes(graph, one)]
    trained = programs[0] if training.trains else None
    run = Run(
        built=training.built,
        building=training.building,
        slots=training.slots,
        others=training.others,
        program=trained[1] if trained else None,
        parts=trained[2] if trained else (),
        kept_by_trace=kept_by_trace(trained[0].step.definition) if trained else 0,
        further=[Further(one.phase, program, one.accumulated) for one, program, _ in programs[training.trains :]],
        is_sent=training.workers > 1,
        values=training.values,
        computed=training.computed,
    )
    phases, resident = phases_of(run, device)
    return phases, resident, [*notes, *workspace_notes(device)]


def _sized_graph(one: Pass, optimized: OptimizedStep, values: Mapping[Variable, Value]) -> StepGraph:
    """The graph of a step; what sizes tracing did not find out are looked for in a run on paper."""
    graph = step_graph(optimized, one.handles, one.batch_size)
    found = Sizes()
    while graph.unsized:
        tags = Attribution(graph, one.owners).tags
        sizes = sizes_in(Program(graph, tags, values=values))
        check_deadline()
        # What is known now may tell more.
        if not (sizes.values.keys() - found.values.keys() or sizes.shapes.keys() - found.shapes.keys()):
            break
        found = Sizes({**found.values, **sizes.values}, {**found.shapes, **sizes.shapes})
        graph = step_graph(optimized, one.handles, one.batch_size, found)
    return graph


def _notes_on_sizes(graph: StepGraph, one: Pass) -> list[str]:
    unknown = [
        f"The size of {name!r} ({one.owners.find(name).layer}) is not known before the run; it was not counted."
        for name in graph.unknown
    ]
    assumed = [
        f"The first dimension of some tensors of {layer} is only known in the run; it was taken for the batch, "
        f"{one.batch_size}."
        for layer in dict.fromkeys(one.owners.find(name).layer for name in graph.assumed)
    ]
    most = [
        f"How much {name!r} ({one.owners.find(name).layer}) lets through is decided by values in the run; the most "
        "that is possible was counted."
        for name in graph.bounded
    ]
    return [*unknown, *assumed, *most]
