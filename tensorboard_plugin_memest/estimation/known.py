"""Small values that a run on paper works out: what decides how often a loop runs and which branch is taken.

A counter, its bound, whether enough gradients are summed: whole numbers and truths, from constants and from variables
whose value is known. What depends on the data is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorboard_plugin_memest.estimation.graph import Node, StepGraph, constant_value

# An array, or for a list or an optional a tuple of those of its elements, None for what is not known.
Value = Any

# A tensor with more elements decides nothing.
MOST_ELEMENTS = 64

_BINARY: dict[str, Callable[..., Any]] = {
    "Add": np.add, "AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "Maximum": np.maximum,
    "Minimum": np.minimum, "FloorDiv": np.floor_divide, "FloorMod": np.mod, "Less": np.less,
    "LessEqual": np.less_equal, "Greater": np.greater, "GreaterEqual": np.greater_equal, "Equal": np.equal,
    "NotEqual": np.not_equal, "LogicalOr": np.logical_or, "Pow": np.power,
}  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {
    "Neg": np.negative, "Abs": np.abs, "Sign": np.sign, "LogicalNot": np.logical_not, "Floor": np.floor,
}  # fmt: skip
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Max": np.max, "Min": np.min, "Sum": np.sum, "Prod": np.prod, "All": np.all, "Any": np.any,
}  # fmt: skip
_SAME = {"Identity", "Enter", "Exit", "NextIteration", "LoopCond", "Switch", "_SwitchN", "StopGradient"}

# Whose inputs at these positions say which element of a list is meant, or how many there are.
_POSITIONS = {"TensorListGetItem": 1, "TensorListSetItem": 1, "TensorListReserve": 1}


def deciding(graph: StepGraph) -> frozenset[int]:
    """Nodes on whose values it depends how often loops run, which branches are taken and which elements are meant."""
    waiting = [node.inputs[1][0] for node in graph.nodes if node.op in ("Switch", "_SwitchN")]
    waiting += [node.inputs[0][0] for node in graph.nodes if node.op == "LoopCond"]
    waiting += [node.inputs[_POSITIONS[node.op]][0] for node in graph.nodes if node.op in _POSITIONS]
    assigning: dict[object, list[int]] = {}
    for index, node in enumerate(graph.nodes):
        if node.op.startswith("Assign") and node.inputs and node.inputs[0][0] in graph.variable_of:
            assigning.setdefault(graph.variable_of[node.inputs[0][0]], []).append(index)
    found: set[int] = set()
    while waiting:
        index = waiting.pop()
        node = graph.nodes[index]
        if index in found or not _can_be_known(node):
            continue
        found.add(index)
        if node.op == "ReadVariableOp" or node.op.startswith("Assign"):
            waiting += assigning.get(graph.variable_of.get(node.inputs[0][0]), ())
        waiting += [source for source, _ in node.inputs]
    return frozenset(found)


def _can_be_known(node: Node) -> bool:
    small = (
        output.shape is None or (len(output.shape) <= 1 and int(np.prod(output.shape)) <= MOST_ELEMENTS)
        for output in node.outputs
    )
    return not node.outputs or any(small)


def constants(graph: StepGraph, nodes: frozenset[int]) -> dict[int, Value]:
    """The values of those of `nodes` that are constants."""
    found = {index: constant_value(graph.nodes[index]) for index in nodes}
    return {index: np.asarray(value) for index, value in found.items() if value is not None and value.dtype != object}


def results_of(node: Node, inputs: Sequence[Value | None]) -> list[Value | None]:
    """What the outputs of a node are, as far as its inputs are known; None where that does not follow from them."""
    given = inputs[0] if inputs and isinstance(inputs[0], tuple) else None
    match node.op:
        case "EmptyTensorList":
            return [()]
        case "TensorListPushBack" if given is not None:
            return [(*given, inputs[1])]
        case "TensorListPopBack" if given:
            return [given[:-1], given[-1]]
        case "OptionalFromValue":
            # A branch hands on to its gradient what that needs, such as how often a loop in it ran.
            return [tuple(inputs)]
        case "OptionalGetValue" if given is not None and len(given) == len(node.outputs):
            return list(given)
    return [_result_of(node, inputs)] * len(node.outputs)


def scalar(value: Value | None) -> int | None:
    """A value as one whole number, if it is one."""
    return int(value.item()) if isinstance(value, np.ndarray) and value.size == 1 else None


def _result_of(node: Node, inputs: Sequence[Value | None]) -> Value | None:
    if node.op == "Merge":
        return next((value for value in inputs if value is not None), None)
    if node.op in _SAME:
        return inputs[0]
    if node.op == "LogicalAnd":
        # What the data decides besides is taken for true: a loop that may end early runs as far as it can.
        sure = [value for value in inputs if value is not None]
        return np.asarray(all(bool(value.all()) for value in sure)) if sure else None
    if node.op == "OptionalHasValue":
        # There is a batch.
        return np.asarray(True)
    if not inputs or any(value is None or isinstance(value, tuple) for value in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            return _computed(node, inputs)
    except (ValueError, TypeError, OverflowError):
        # Such a step would fail in the run, too; what it decides is nothing to know.
        return None


def _computed(node: Node, inputs: Sequence[Value]) -> Value | None:
    made: Any
    if node.op in _BINARY:
        made = _BINARY[node.op](*inputs)
    elif node.op in _UNARY:
        made = _UNARY[node.op](inputs[0])
    elif node.op in _REDUCTIONS:
        value, axes = inputs[0], np.atleast_1d(np.asarray(inputs[1]))
        made = _REDUCTIONS[node.op](value, axis=tuple(int(axis) for axis in axes)) if axes.size else value
    elif node.op == "Cast":
        made = np.asarray(inputs[0]).astype(node.outputs[0].dtype)
    elif node.op == "Range":
        made = np.arange(*(int(np.asarray(value)) for value in inputs))
    elif node.op in ("Select", "SelectV2"):
        made = np.where(np.asarray(inputs[0]), np.asarray(inputs[1]), np.asarray(inputs[2]))
    elif node.op == "Pack":
        made = np.stack([np.asarray(value) for value in inputs])
    elif node.op in ("Reshape", "Squeeze", "ExpandDims") and node.outputs[0].shape is not None:
        made = np.reshape(np.asarray(inputs[0]), node.outputs[0].shape)
    else:
        return None
    return np.asarray(made)
