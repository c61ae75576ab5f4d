"""The phases of a training whose step XLA compiles: from its compiler, or where that is silent, from the graph."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from tensorboard_plugin_memest.estimation.attribution import UPDATE, Attribution
from tensorboard_plugin_memest.estimation.deadline import check_deadline
from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.graph_mode import phases_of_graph
from tensorboard_plugin_memest.estimation.training import Pass, Training
from tensorboard_plugin_memest.estimation.xla.attribution import ModuleAttribution
from tensorboard_plugin_memest.estimation.xla.compilation import compile_ahead, compiled
from tensorboard_plugin_memest.estimation.xla.module import module_of
from tensorboard_plugin_memest.estimation.xla.phases import CompiledRun, CompiledStep, FurtherStep, phases_of
from tensorboard_plugin_memest.estimation.xla.request import VARIABLE, NotCompilableError, request_of
from tensorboard_plugin_memest.estimation.xla.target import ON_CPU, Target, targets
from tensorboard_plugin_memest.memory.estimate import Phase


def phases_with_xla(training: Training, device: Device, timeout: float) -> tuple[dict[str, Phase], int, list[str]]:
    """The phases, the bytes of all variables, and what had to be assumed.

    Args:
        training: one that was traced for XLA.
        device: what it would run on.
        timeout: seconds that compiling a step may take; 0 to approximate without it.
    """
    try:
        if not timeout:
            raise NotCompilableError("compile_timeout=0")
        steps, asked = _compiled_steps(training, device, timeout)
    except NotCompilableError as error:
        phases, resident, notes = phases_of_graph(training, device, _update_in_place)
        return phases, resident, [_approximation(error), *notes]
    trained = steps[0].step if training.trains else None
    run = CompiledRun(
        built=training.built,
        slots=training.slots,
        others=training.others,
        step=trained,
        further=steps[training.trains :],
        building=training.building,
        computed=training.computed,
    )
    phases, resident = phases_of(run, device)
    notes = [note for one in training.passes for note in one.assumptions]
    return phases, resident, [*notes, *asked]


def begin_compiling(training: Training, device: Device, timeout: float) -> None:
    """Has the steps of a training compiled meanwhile, inside of `compilers`; what is wrong with them shows later."""
    if timeout:
        with contextlib.suppress(NotCompilableError):
            for one in training.passes:
                compile_ahead(request_of(one.step, one.handles, targets(device)[0]), timeout)


def _compiled_steps(training: Training, device: Device, timeout: float) -> tuple[list[FurtherStep], list[str]]:
    """The steps as the best compiler makes them that takes them all, and what is to be said of it."""
    refused = []
    for target in targets(device):
        try:
            steps = [
                FurtherStep(one.phase, _compiled_step(one, target, timeout), one.accumulated) for one in training.passes
            ]
        except NotCompilableError as error:
            if target == ON_CPU:
                raise
            refused = [f"XLA's compiler for this machine's GPU ({target.name}) was asked first, but {error}."]
        else:
            return steps, [*target.notes(device), *refused]
    raise AssertionError("A CPU is always among them.")


def _compiled_step(one: Pass, target: Target, timeout: float) -> CompiledStep:
    check_deadline()
    request = request_of(one.step, one.handles, target)
    answer = compiled(request, timeout)
    try:
        module = module_of(answer)
    except Exception as error:
        if target == ON_CPU:
            raise
        # Another compiler may tell in other terms.
        raise NotCompilableError(f"its account cannot be read ({type(error).__name__}: {error})") from error
    if not module.allocations and target != ON_CPU:
        raise NotCompilableError("its account has no memory in it")
    variables = [one.handles[argument.name] if argument.kind == VARIABLE else None for argument in request.arguments]
    return CompiledStep(module, ModuleAttribution(module, variables, one.owners), request.arguments, variables)


def _approximation(error: NotCompilableError) -> str:
    return (
        f"APPROXIMATION: XLA's own account of the step's memory is not there, because {error}. The numbers are those "
        "of graph mode with the optimizer's update in place; what XLA fuses in the rest of the step would make them "
        "lower, what it keeps longer, higher."
    )


def _update_in_place(attribution: Attribution) -> None:
    """Takes their memory from the tensors of the update: XLA fuses it, so that none of them comes to be."""
    for node, part in zip(attribution.graph.nodes, attribution.parts, strict=True):
        if part == UPDATE:
            node.outputs = [replace(output, bytes=0) for output in node.outputs]
