"""A step's graph with the functions it calls, each tensor tagged: what an execution runs."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.attribution import Attribution
from tensorboard_plugin_memest.estimation.execution import Program
from tensorboard_plugin_memest.estimation.graph import CALLS, CONDITIONALS, LOOPS, StepGraph
from tensorboard_plugin_memest.estimation.loops import iterations

_PYTHON = {"PyFunc", "EagerPyFunc", "PyFuncStateless"}


def program_of(graph: StepGraph, attribution: Attribution) -> tuple[Program, list[str]]:
    """The program of a step, and what had to be assumed about it."""
    notes: list[str] = []
    return _program(graph, attribution, notes), notes


def _program(graph: StepGraph, attribution: Attribution, notes: list[str]) -> Program:
    program = Program(graph, attribution.tags)
    for index in range(len(graph.nodes)):
        _add_called(program, index, attribution, notes)
    return program


def _add_called(program: Program, index: int, attribution: Attribution, notes: list[str]) -> None:
    graph = program.graph
    node = graph.nodes[index]
    layer = attribution.layer_of(index)
    if node.op in LOOPS:
        graphs = [graph.function(index, "body")]
        count = iterations(graph, index, program.counts)
        if count is None:
            count = 1
            notes.append(f"How often the loop {node.name!r} ({layer}) runs is not known; it was counted once.")
        program.counts[index] = count
    elif node.op in CONDITIONALS:
        if "branches" in node.attributes:
            graphs = graph.branches(index)
        else:
            graphs = [graph.function(index, "then_branch"), graph.function(index, "else_branch")]
    elif node.op in CALLS:
        graphs = [graph.function(index, "f")]
    else:
        if node.op in _PYTHON:
            notes.append(f"{node.name!r} ({layer}) runs Python code; what that allocates is not counted.")
        return
    program.called[index] = []
    for called in graphs:
        program.called[index].append(_program(called, attribution.of_called(index, called), notes))
        notes += [
            f"The size of {name!r} in {node.name!r} ({layer}) is not known before the run; it was not counted."
            for name in called.unknown
        ]
