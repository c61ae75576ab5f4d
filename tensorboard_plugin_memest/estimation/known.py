"""Small values that a run on paper works out: what decides how often a loop runs and which branch is taken.

A counter, its bound, whether enough gradients are summed: whole numbers and truths, from constants and from variables
whose value is known. What depends on the data is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorboard_plugin_memest.estimation.graph import Node, StepGraph, Value, constant_value
from tensorboard_plugin_memest.estimation.variables import is_small

COMPARISONS: dict[str, Callable[..., Any]] = {
    "Less": np.less, "LessEqual": np.less_equal, "Greater": np.greater, "GreaterEqual": np.greater_equal,
    "Equal": np.equal, "NotEqual": np.not_equal,
}  # fmt: skip
_BINARY: dict[str, Callable[..., Any]] = {
    "Add": np.add, "AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "Maximum": np.maximum,
    "Minimum": np.minimum, "FloorDiv": np.floor_divide, "FloorMod": np.mod, "Mod": np.fmod, "TruncateMod": np.fmod,
    "RealDiv": np.divide, "DivNoNan": np.divide, **COMPARISONS, "LogicalOr": np.logical_or,
    "Pow": np.power, "SquaredDifference": lambda one, other: np.square(one - other), "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor, "LeftShift": np.left_shift, "RightShift": np.right_shift,
}  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {
    "Neg": np.negative, "Abs": np.abs, "Sign": np.sign, "LogicalNot": np.logical_not, "Floor": np.floor,
    "Ceil": np.ceil, "Round": np.round, "Rint": np.rint, "Square": np.square, "Sqrt": np.sqrt,
    "Rsqrt": lambda value: 1 / np.sqrt(value), "Reciprocal": np.reciprocal, "Inv": np.reciprocal, "Exp": np.exp,
    "Log": np.log, "Log1p": np.log1p, "Sin": np.sin, "Cos": np.cos, "Tanh": np.tanh, "ZerosLike": np.zeros_like,
    "OnesLike": np.ones_like, "IsNan": np.isnan, "IsFinite": np.isfinite,
}  # fmt: skip
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Max": np.max, "Min": np.min, "Sum": np.sum, "Prod": np.prod, "Mean": np.mean, "All": np.all, "Any": np.any,
}  # fmt: skip
_SAME = {"Identity", "Enter", "Exit", "NextIteration", "LoopCond", "Switch", "_SwitchN", "StopGradient"}

# Whose inputs at these positions say which element of a list is meant, or how many there are.
_POSITIONS = {"TensorListGetItem": 1, "TensorListSetItem": 1, "TensorListReserve": 1, "TensorListResize": 1}


def deciding(graph: StepGraph) -> frozenset[int]:
    """Nodes on whose values it depends how often loops run, which branches are taken and which elements are meant.

    Those are among them that decide how large a tensor is, where only the run tells.
    """
    waiting = [node.inputs[1][0] for node in graph.nodes if node.op in ("Switch", "_SwitchN")]
    waiting += [node.inputs[0][0] for node in graph.nodes if node.op == "LoopCond"]
    waiting += [node.inputs[_POSITIONS[node.op]][0] for node in graph.nodes if node.op in _POSITIONS]
    waiting += sizing(graph)
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


def sizing(graph: StepGraph) -> frozenset[int]:
    """Nodes on whose values it may depend how large tensors are whose size tracing did not find out."""
    given = {source for index in graph.unsized for source, _ in graph.nodes[index].inputs}
    return frozenset(index for index in given if graph.nodes[index].op != "Const")


def _can_be_known(node: Node) -> bool:
    return not node.outputs or any(output.shape is None or is_small(output.shape) for output in node.outputs)


def constants(graph: StepGraph, nodes: frozenset[int]) -> dict[int, Value]:
    """The values of those of `nodes` that are the same in every step: constants, and tensors from outside."""
    found = {index: graph.values.get(index, constant_value(graph.nodes[index])) for index in nodes}
    return {index: np.asarray(value) for index, value in found.items() if value is not None and value.dtype != object}


def results_of(graph: StepGraph, index: int, inputs: Sequence[Value | None]) -> list[Value | None]:
    """What the outputs of a node are, as far as its inputs are known; None where that does not follow from them."""
    node = graph.nodes[index]
    given = inputs[0] if inputs and isinstance(inputs[0], tuple) else None
    second = scalar(inputs[1]) if len(inputs) > 1 else None
    match node.op:
        case "EmptyTensorList":
            return [()]
        case "TensorListReserve" if second is not None:
            return [(None,) * second]
        case "TensorListFromTensor":
            return [_rows(graph, index, inputs[0])]
        case "TensorListResize" if given is not None and second is not None:
            return [(*given, *(None for _ in range(second)))[:second]]
        case "TensorListSetItem" if given is not None and second is not None:
            longer = (*given, *(None for _ in range(second + 1 - len(given))))
            return [(*longer[:second], inputs[2], *longer[second + 1 :])]
        case "TensorListGetItem" if given is not None and second is not None and second < len(given):
            return [given[second]]
        case "TensorListLength" if given is not None:
            return [np.asarray(len(given))]
        case "TensorListPushBack" if given is not None:
            return [(*given, inputs[1])]
        case "TensorListPopBack" if given:
            return [given[:-1], given[-1]]
        case "OptionalFromValue":
            # A branch hands on to its gradient what that needs, such as how often a loop in it ran.
            return [tuple(inputs)]
        case "OptionalGetValue" if given is not None and len(given) == len(node.outputs):
            return list(given)
        case "Unpack" if isinstance(inputs[0], np.ndarray):
            return list(inputs[0])
    return [_result_of(node, inputs)] * len(node.outputs)


def _rows(graph: StepGraph, index: int, value: Value | None) -> Value | None:
    """A list of the rows of a tensor, of which how many there are may be all that is known."""
    if isinstance(value, np.ndarray):
        return tuple(value)
    source, output = graph.nodes[index].inputs[0]
    shape = graph.nodes[source].outputs[output].shape
    return (None,) * shape[0] if shape else None


def larger(one: Value | None, other: Value) -> Value:
    """Of two values of the same output in different iterations, the one that makes larger tensors."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.shape == other.shape:
        return np.maximum(one, other)
    return other if one is None or np.size(other) > np.size(one) else one


def scalar(value: Value | None) -> int | None:
    """A value as one whole number, if it is one number."""
    if not isinstance(value, np.ndarray) or value.size != 1 or not np.isfinite(value).all():
        return None
    return int(value.item())


def _result_of(node: Node, inputs: Sequence[Value | None]) -> Value | None:
    if node.op == "Merge":
        return next((value for value in inputs if value is not None), None)
    if node.op in _SAME:
        return inputs[0]
    if node.op == "LogicalAnd":
        # What the data decides besides is taken for true: a loop that may end early runs as far as it can.
        sure = [value for value in inputs if value is not None]
        return np.asarray(all(bool(value.all()) for value in sure)) if sure else None
    if node.op == "LogicalOr" and any(value is not None and value.all() for value in inputs):
        return np.asarray(True)
    if node.op == "OptionalHasValue":
        # There is a batch.
        return np.asarray(True)
    if not inputs or any(value is None or isinstance(value, tuple) for value in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            return _computed(node, inputs)
    except (ValueError, TypeError, OverflowError, IndexError):
        # Such a step would fail in the run, too; what it decides is nothing to know.
        return None


def _computed(node: Node, inputs: Sequence[Value]) -> Value | None:
    made: Any
    if node.op in _BINARY:
        made = _BINARY[node.op](*inputs)
    elif node.op in _UNARY:
        made = _UNARY[node.op](inputs[0])
    elif node.op in _REDUCTIONS:
        value, axes = inputs[0], np.atleast_1d(inputs[1])
        made = _REDUCTIONS[node.op](value, axis=tuple(int(axis) for axis in axes)) if axes.size else value
    elif node.op == "Cast":
        made = inputs[0].astype(node.outputs[0].dtype)
    elif node.op == "Range":
        made = np.arange(*(value.item() for value in inputs))
    elif node.op in ("Select", "SelectV2"):
        made = np.where(*inputs)
    elif node.op == "Pack":
        made = np.stack(inputs)
    elif node.op == "ConcatV2":
        made = np.concatenate(inputs[:-1])
    elif node.op == "Fill":
        made = np.full(inputs[0], inputs[1])
    elif node.op == "GatherV2":
        made = np.take(inputs[0], inputs[1], axis=0)
    elif node.op == "Slice":
        begin, size = int(inputs[1][0]), int(inputs[2][0])
        made = inputs[0][begin : None if size < 0 else begin + size]
    elif node.op == "StridedSlice":
        made = _sliced(node, *inputs)
    elif node.op == "AddN":
        made = sum(inputs)
    elif node.op in ("Reshape", "Squeeze", "ExpandDims") and node.outputs[0].shape is not None:
        made = np.reshape(inputs[0], node.outputs[0].shape)
    else:
        return None
    return None if made is None else np.asarray(made)


def _sliced(node: Node, value: Value, begin: Value, end: Value, step: Value) -> Value | None:
    """A part of a vector."""
    masks = {key: node.attributes[f"{key}_mask"].i for key in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    if value.ndim != 1 or masks["ellipsis"] or masks["new_axis"]:
        return None
    if masks["shrink_axis"]:
        return value[int(begin[0])]
    return value[None if masks["begin"] else int(begin[0]) : None if masks["end"] else int(end[0]) : int(step[0])]
