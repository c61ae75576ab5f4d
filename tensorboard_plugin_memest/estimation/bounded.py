"""Tensors whose size depends on the values in others: the most that they can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2

from tensorboard_plugin_memest.estimation.imported import imported

# What stands for such an op: one with the same outputs, but with shapes, and without inputs.
_STANDS = "InfeedDequeueTuple"

# As many entries in each output as the input has.
_UNIQUE = {"Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2", "ListDiff"}


def bounded(
    definition: graph_pb2.GraphDef,
    shapes: Mapping[str, Sequence[tuple[int, ...]]],
    *shapes_of: Callable[[str, int, tf.TensorShape], tf.TensorShape],
) -> tuple[tf.Graph, Mapping[str, None]]:
    """`definition` with the shapes that TensorFlow infers, where masks let everything through and all values differ.

    Args:
        definition: nodes and functions.
        shapes: by name, those of the outputs of nodes of which TensorFlow cannot infer them.
        shapes_of: what is known of an output of a node besides, the surest first: each takes the node's name, the
            output and the inferred shape.

    Returns:
        The graph, to be looked at only, and the names of the ops whose size was bounded.
    """
    graph = imported(definition)
    if shapes:
        definition = _with_stand_ins(definition, graph, shapes)
        graph = imported(definition)
    names: dict[str, None] = {}
    # One such op may depend on another.
    while True:
        waiting = [node for node in definition.node if node.name not in names]
        for shape_of in shapes_of:
            found = {node.name: largest for node in waiting if (largest := _largest(node, graph, shape_of)) is not None}
            if found:
                break
        else:
            return graph, names
        names |= dict.fromkeys(found)
        definition = _with_stand_ins(definition, graph, found)
        graph = imported(definition)


def _largest(
    node: node_def_pb2.NodeDef, graph: tf.Graph, shape_of: Callable[[str, int, tf.TensorShape], tf.TensorShape]
) -> list[tf.TensorShape] | None:
    if node.op != "Where" and node.op not in _UNIQUE:
        return None
    name, _, output = node.input[0].partition(":")
    given = shape_of(name, int(output or 0), graph.get_operation_by_name(name).outputs[int(output or 0)].shape)
    if not given.is_fully_defined() or (node.op in _UNIQUE and given.rank != 1):
        return None
    if node.op == "Where":
        return [tf.TensorShape([given.num_elements(), given.rank])]
    return [given for _ in graph.get_operation_by_name(node.name).outputs]


def _with_stand_ins(
    definition: graph_pb2.GraphDef, graph: tf.Graph, shapes: Mapping[str, Sequence[Any]]
) -> graph_pb2.GraphDef:
    changed = graph_pb2.GraphDef()
    changed.CopyFrom(definition)
    for node in changed.node:
        if node.name in shapes:
            types = [output.dtype for output in graph.get_operation_by_name(node.name).outputs]
            _stand_in(node, types, [tf.TensorShape(shape) for shape in shapes[node.name]])
    return changed


def _stand_in(node: node_def_pb2.NodeDef, types: Sequence[tf.DType], shapes: Sequence[tf.TensorShape]) -> None:
    made = node_def_pb2.NodeDef(name=node.name, op=_STANDS, device=node.device)
    made.attr["dtypes"].list.type.extend(dtype.as_datatype_enum for dtype in types)
    made.attr["shapes"].list.shape.extend(shape.as_proto() for shape in shapes)
    node.CopyFrom(made)
