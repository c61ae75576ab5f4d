"""A step's graph with the functions it calls, each tensor tagged: what an execution runs."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.attribution import Attribution
from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.execution import Loop, Program
from tensorboard_plugin_memest.estimation.graph import LOOPS
from tensorboard_plugin_memest.estimation.loops import deciding, iterations
from tensorboard_plugin_memest.estimation.workspace.catalogue import workspaces_of

# What `tf.while_loop` takes for its parallel_iterations.
DEFAULT_AT_ONCE = 10

_PYTHON = {"PyFunc", "EagerPyFunc", "PyFuncStateless"}


def program_of(attribution: Attribution, device: Device) -> tuple[Program, list[str]]:
    """The program of an attributed graph on a device, and what had to be assumed about it."""
    notes: list[str] = []
    return _program(attribution, device, notes), notes


def _program(attribution: Attribution, device: Device, notes: list[str]) -> Program:
    graph = attribution.graph
    program = Program(graph, attribution.tags, workspaces=workspaces_of(graph, device))
    for index, node in enumerate(graph.nodes):
        layer = attribution.layer_of(index)
        if node.op in _PYTHON:
            notes.append(f"{node.name!r} ({layer}) runs Python code; what that allocates is not counted.")
        if node.op in LOOPS:
            count = iterations(graph, index, {known: loop.count for known, loop in program.loops.items()})
            if count is None:
                count = 1
                notes.append(f"How often the loop {node.name!r} ({layer}) runs is not known; it was counted once.")
            at_once = node.attributes["parallel_iterations"].i or DEFAULT_AT_ONCE
            program.loops[index] = Loop(count, at_once, deciding(graph, index))
        for called in attribution.called.get(index, ()):
            program.called.setdefault(index, []).append(_program(called, device, notes))
            notes += [
                f"The size of {name!r} in {node.name!r} ({layer}) is not known before the run; it was not counted."
                for name in called.graph.unknown
            ]
    return program
