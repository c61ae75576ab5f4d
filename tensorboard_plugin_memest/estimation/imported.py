"""A GraphDef with the shapes that TensorFlow infers for it."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import ops


def imported(definition: graph_pb2.GraphDef) -> tf.Graph:
    """A graph of the nodes of `definition`, to be looked at only: its ops know their outputs and nothing else.

    Raises:
        ValueError: `definition` is no graph that TensorFlow takes.
    """
    graph = _Looked()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return graph


class _Looked(tf.Graph):  # type: ignore[misc]
    """A graph whose imported ops are not prepared for running: devices and control flow take most of an import."""

    def _add_new_tf_operations(self, compute_devices: bool = True) -> list[ops.Operation]:
        for made in self.new_operations():
            ops.Operation._from_c_op(c_op=made, g=self)
        return []
