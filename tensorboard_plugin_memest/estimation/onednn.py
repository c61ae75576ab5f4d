"""What oneDNN's kernels change in a graph that runs on a CPU.

Source of the rules: `mkl_layout_pass.cc`, and which nodes the runtime's own dumps of trainings show replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tensorboard_plugin_memest.estimation.graph import Node, StepGraph

_OPS = {
    "AvgPool", "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad", "BatchMatMul", "BatchMatMulV2", "ConjugateTranspose",
    "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilterV2",
    "Conv3DBackpropInputV2", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
    "DepthwiseConv2dNativeBackpropInput", "Einsum", "MatMul", "MaxPool", "MaxPool3D", "MaxPool3DGrad", "MaxPoolGrad",
    "Softmax", "Transpose", "_FusedConv2D", "_FusedConv3D", "_FusedDepthwiseConv2dNative", "_FusedMatMul",
}  # fmt: skip
_TYPES = {"float32", "bfloat16", "float16"}


def is_replaced(node: Node) -> bool:
    """Whether a kernel of oneDNN stands in for TensorFlow's."""
    return node.op in _OPS and any(output.dtype in _TYPES for output in node.outputs)


def merge_bias_gradients(graph: StepGraph) -> None:
    """A convolution's kernel makes the gradient of its bias too; the node that made it only renames that."""
    filters: dict[tuple[int, int], list[int]] = {}
    for index, node in enumerate(graph.nodes):
        if node.op == "Conv2DBackpropFilter" and is_replaced(node):
            filters.setdefault(node.inputs[2], []).append(index)
    for index, node in enumerate(graph.nodes):
        if node.op != "BiasAddGrad" or not filters.get(node.inputs[0]):
            continue
        convolution = filters[node.inputs[0]].pop(0)
        both = graph.nodes[convolution]
        graph.nodes[convolution] = replace(
            both,
            outputs=[*both.outputs, *node.outputs],
            control_inputs=[*both.control_inputs, *(one for one in node.control_inputs if one != convolution)],
        )
        graph.nodes[index] = replace(node, op="Identity", inputs=[(convolution, 1)], control_inputs=[])


def merged_bias_gradients(graph: StepGraph) -> Iterator[tuple[int, int]]:
    """Nodes that only rename a bias' gradient, each with the convolution whose kernel makes it."""
    for index, node in enumerate(graph.nodes):
        if node.op == "Identity" and node.inputs and node.inputs[0][1] == 1:
            source = node.inputs[0][0]
            if graph.nodes[source].op == "Conv2DBackpropFilter":
                yield index, source
