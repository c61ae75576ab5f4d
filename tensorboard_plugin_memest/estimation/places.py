"""oneDNN's maximum pooling: it keeps where each maximum lay for the backward pass, in an output that the graph lacks.

TensorFlow's runtime puts such kernels in after Grappler, where the gradient of the pooling is in the same graph or not.
Source: `mkl_layout_pass.cc` (`NonDepthBatchWisePoolRewrite`, `MaxpoolGradRewrite`) in `tensorflow/core/common_runtime`,
`mkl_maxpooling_op.cc` in `tensorflow/core/kernels/mkl`; `pooling_index_data_type` in oneDNN.
"""

from __future__ import annotations

import math

from tensorboard_plugin_memest.estimation.graph import Node, Output, StepGraph

_GRADIENTS = {"MaxPoolGrad": "MaxPool", "MaxPool3DGrad": "MaxPool3D"}

# Inputs of a gradient that is handed the places.
INPUTS = 4

# Places within a window are one byte up to this many, else four.
_MOST_IN_A_BYTE = 255


def keep_places(graph: StepGraph) -> None:
    """Gives every maximum pooling that oneDNN would compute its second output, and that to its gradient."""
    keeping = set()
    for index, node in enumerate(graph.nodes):
        size = size_of_places(node)
        if size:
            node.outputs.append(Output((size,), "uint8", size))
            keeping.add(index)
    for node in graph.nodes:
        if node.op in _GRADIENTS and node.inputs[1][0] in keeping:
            node.inputs.append((node.inputs[1][0], 1))


def size_of_places(node: Node) -> int:
    """Bytes of where the maxima lay that `node` computes with oneDNN; 0 where it does no such thing."""
    if node.op not in _GRADIENTS.values() or node.outputs[0].dtype not in ("float32", "bfloat16"):
        return 0
    pooled = node.outputs[0].shape
    windows, strides = list(node.attributes["ksize"].list.i), list(node.attributes["strides"].list.i)
    # TensorFlow's own kernels pool over examples or channels.
    if pooled is None or any(sizes[0] != 1 or sizes[-1] != 1 for sizes in (windows, strides)):
        return 0
    return math.prod(pooled) * (1 if math.prod(windows) <= _MOST_IN_A_BYTE else 4)
