"""A step's graph with the functions it calls, each tensor tagged: what an execution runs."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.attribution import FORWARD, UPDATE, Attribution
from tensorboard_plugin_memest.estimation.execution import Program
from tensorboard_plugin_memest.estimation.graph import CALLS, CONDITIONALS, LOOPS, StepGraph
from tensorboard_plugin_memest.estimation.loops import iterations
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.memory.category import Category

_STORED_BY = {"TensorListPushBack", "TensorListSetItem"}
_PYTHON = {"PyFunc", "EagerPyFunc", "PyFuncStateless"}


def program_of(graph: StepGraph, attribution: Attribution) -> tuple[Program, list[str]]:
    """The program of a step, and what had to be assumed about it."""
    notes: list[str] = []
    program = Program(graph, attribution.tags)
    for index in range(len(graph.nodes)):
        context = _Context(
            attribution.layer_of(index), graph.nodes[index].name, attribution.parts[index], attribution.weight_of(index)
        )
        _add_called(program, index, context, notes)
    return program, notes


class _Context:
    """What the tensors inside a called function inherit from the call."""

    def __init__(self, layer: str, name: str, part: str, weight: str | None) -> None:
        self.layer = layer
        self.name = name
        self.part = part
        self.weight = weight

    def tags(self, graph: StepGraph) -> list[list[Tag]]:
        stored = {source for node in graph.nodes if node.op in _STORED_BY for source, _ in node.inputs[1:]}
        return [
            [self._tag(graph, index, output, index in stored) for output in range(len(node.outputs))]
            for index, node in enumerate(graph.nodes)
        ]

    def _tag(self, graph: StepGraph, index: int, output: int, stored: bool) -> Tag:
        node = graph.nodes[index]
        made = node.outputs[output]
        variable = None
        if node.op == "Const":
            category, role = Category.CONSTANTS, "constant"
        elif self.part == UPDATE:
            category, role, variable = Category.TEMPORARIES, "update temporary", self.weight
        elif self.part == FORWARD and stored:
            # What a loop stores in its lists is there for the backward pass, or is the loop's own output.
            category, role = Category.ACTIVATIONS, f"{node.op} output, one an iteration"
        else:
            category, role = Category.TEMPORARIES, f"{node.op} output"
        return Tag(self.layer, f"{self.name}/{node.name}", category, role, variable, made.shape, made.dtype)


def _add_called(program: Program, index: int, context: _Context, notes: list[str]) -> None:
    graph = program.graph
    node = graph.nodes[index]
    if node.op in LOOPS:
        graphs = [graph.function(index, "body")]
        count = iterations(graph, index, program.counts)
        if count is None:
            count = 1
            notes.append(f"How often the loop {node.name!r} ({context.layer}) runs is not known; it was counted once.")
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
            notes.append(f"{node.name!r} ({context.layer}) runs Python code; what that allocates is not counted.")
        return
    program.called[index] = []
    for called in graphs:
        nested = Program(called, context.tags(called))
        program.called[index].append(nested)
        for inner in range(len(called.nodes)):
            _add_called(nested, inner, context, notes)
        notes += [
            f"The size of {name!r} in {node.name!r} ({context.layer}) is not known before the run; it was not counted."
            for name in called.unknown
        ]
