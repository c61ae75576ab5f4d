"""Frees what tracing leaves behind: TensorFlow expects a graph to be kept as long as the process lives."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.framework import ops


def discard_graph(graph: tf.Graph) -> None:
    """Frees `graph` and what only it holds; neither it nor its tensors can be used any more."""
    # Gradients that were defined for an op of this graph alone are registered for good, and hold its tensors.
    for operation in graph.get_operations():
        if operation.type == "IdentityN":
            name = operation.node_def.attr["_gradient_op_type"].s.decode()
            if name.startswith("CustomGradient-"):
                ops.gradient_registry._registry.pop(name, None)
    # Tensors refer to their graph in a way that the garbage collector does not see.
    ops.dismantle_graph(graph)
