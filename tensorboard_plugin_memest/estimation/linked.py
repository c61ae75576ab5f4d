"""The program of an attributed graph: linked with those of the functions it calls, and with what kernels keep."""

from __future__ import annotations

from collections.abc import Mapping

from tensorboard_plugin_memest.estimation.attribution import Attribution
from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.frames import frame_name
from tensorboard_plugin_memest.estimation.graph import Value
from tensorboard_plugin_memest.estimation.order import INEXPENSIVE
from tensorboard_plugin_memest.estimation.program import Program
from tensorboard_plugin_memest.estimation.trial import trial_of
from tensorboard_plugin_memest.estimation.variables import STEP, Variable
from tensorboard_plugin_memest.estimation.workspace.catalogue import workspaces_of

_PYTHON = {"PyFunc", "EagerPyFunc", "PyFuncStateless"}

# Ops of which it is known what they take where XLA compiles them.
_CONVOLUTIONS = {
    "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3D", "Conv3DBackpropInputV2",
    "Conv3DBackpropFilterV2", "ReadVariableOp",
}  # fmt: skip


def program_of(attribution: Attribution, device: Device, values: Mapping[Variable, Value]) -> tuple[Program, list[str]]:
    """The program of an attributed graph on a device, and what had to be assumed about it.

    Args:
        attribution: the graph.
        device: the device.
        values: what variables hold before the first step, as far as it is known.
    """
    notes: list[str] = []
    program = _program(attribution, device, notes)
    program.values = values
    layers = {
        frame_name(node): attribution.layer_of(index)
        for index, node in enumerate(attribution.graph.nodes)
        if node.op == "Enter"
    }
    notes += [
        f"How often the loop {name!r} ({layers.get(name, STEP)}) runs is not known; it was counted once."
        for name in sorted(trial_of(program).undecided)
    ]
    return program, notes


def _program(attribution: Attribution, device: Device, notes: list[str], *, by_xla: bool = False) -> Program:
    graph = attribution.graph
    program = Program(
        graph, attribution.tags, workspaces=workspaces_of(graph, device, by_xla=by_xla), is_compiled=by_xla
    )
    for index, node in enumerate(graph.nodes):
        layer = attribution.layer_of(index)
        if node.op in _PYTHON:
            notes.append(f"{node.name!r} ({layer}) runs Python code; what that allocates is not counted.")
        if index in attribution.called:
            called = attribution.called[index]
            compiled = by_xla or graph.is_compiled(index)
            program.called[index] = _program(called, device, notes, by_xla=compiled)
            if compiled and any(one.op not in _CONVOLUTIONS | INEXPENSIVE for one in called.graph.nodes):
                notes.append(
                    f"{node.name!r} ({layer}) is compiled by XLA, which may keep fewer tensors than its ops make; they "
                    "were counted one by one."
                )
            notes += [
                f"The size of {name!r} in {node.name!r} ({layer}) is not known before the run; it was not counted."
                for name in called.graph.unknown
            ]
    return program
