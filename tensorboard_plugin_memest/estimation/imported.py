"""A GraphDef with the shapes that TensorFlow infers for it."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import ops


def imported(definition: graph_pb2.GraphDef) -> tf.Graph:
    """A graph of the nodes of `definition`, to be looked at only: its ops know their outputs and nothing else.

    Raises:
        ValueError: `definition` is no graph that TensorFlow takes.
    """
    graph = _Looked()
    with graph.as_default():
        tf.import_graph_def(_allowed(definition), name="")
    return graph


def _allowed(definition: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
    """The same with the kernel's own op where Grappler fuses into one that is not defined for the type.

    With oneDNN, Grappler makes `_FusedConv2D` of bfloat16, which only the runtime turns into `_MklNativeFusedConv2D`.
    """
    functions = (node for function in definition.library.function for node in function.node_def)
    if not any(_is_not_defined(node) for node in (*definition.node, *functions)):
        return definition
    allowed = graph_pb2.GraphDef()
    allowed.CopyFrom(definition)
    functions = (node for function in allowed.library.function for node in function.node_def)
    for node in (*allowed.node, *functions):
        if _is_not_defined(node):
            node.op = "_MklNativeFusedConv2D"
    return allowed


def _is_not_defined(node: node_def_pb2.NodeDef) -> bool:
    return bool(node.op == "_FusedConv2D" and node.attr["T"].type == types_pb2.DT_BFLOAT16)


class _Looked(tf.Graph):  # type: ignore[misc]
    """A graph whose imported ops are not prepared for running: devices and control flow take most of an import."""

    def _add_new_tf_operations(self, compute_devices: bool = True) -> list[ops.Operation]:
        for made in self.new_operations():
            ops.Operation._from_c_op(c_op=made, g=self)
        return []
