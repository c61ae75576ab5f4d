"""Which kernels need workspace, and how much: every op that is known to, by its type."""

from __future__ import annotations

from collections.abc import Callable

from tensorboard_plugin_memest.estimation.device import GPU, Device
from tensorboard_plugin_memest.estimation.graph import StepGraph
from tensorboard_plugin_memest.estimation.workspace import (
    convolution,
    einsum,
    loss,
    matmul,
    normalization,
    pooling,
    reduction,
)
from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace

_CPU: dict[str, Callable[[Kernel], Workspace]] = {
    "Conv2D": convolution.convolution,
    "_FusedConv2D": convolution.convolution,
    "Conv2DBackpropFilter": convolution.filter_gradient,
    "Conv2DBackpropInput": convolution.input_gradient,
    "Conv3D": convolution.convolution,
    "Conv3DBackpropFilterV2": convolution.gradient_3d,
    "Conv3DBackpropInputV2": convolution.gradient_3d,
    "DepthwiseConv2dNative": convolution.depthwise,
    "DepthwiseConv2dNativeBackpropFilter": convolution.depthwise,
    "DepthwiseConv2dNativeBackpropInput": convolution.depthwise,
    "_FusedDepthwiseConv2dNative": convolution.depthwise,
    "MatMul": matmul.product,
    "_FusedMatMul": matmul.product,
    "BatchMatMul": matmul.product,
    "BatchMatMulV2": matmul.product,
    "Einsum": einsum.einsum,
    **dict.fromkeys(("Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm"), reduction.reduction),
    **dict.fromkeys(("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), normalization.gradient),
    "MaxPoolGrad": pooling.gradient_of_maximum,
    "SoftmaxCrossEntropyWithLogits": loss.cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": loss.cross_entropy,
}


def workspace_of(kernel: Kernel) -> Workspace:
    """What a kernel allocates for itself while it runs."""
    rule = None if kernel.device.kind == GPU else _CPU.get(kernel.op)
    return rule(kernel) if rule else NONE


def workspaces_of(graph: StepGraph, device: Device) -> dict[int, Workspace]:
    """The workspace of every node of `graph` that needs some, by its index."""
    found = {index: workspace_of(Kernel(graph, node, device)) for index, node in enumerate(graph.nodes)}
    return {index: workspace for index, workspace in found.items() if workspace}


def workspace_notes(device: Device) -> list[str]:
    """What the estimate takes for granted about workspace on `device`, as sentences."""
    if device.kind == GPU:
        return ["Kernel workspace on a GPU (cuDNN's above all) is not counted; it comes on top."]
    kernels = "oneDNN" if device.onednn else "TensorFlow's own"
    return [
        f"Kernel workspace is that of {kernels} kernels (TF_ENABLE_ONEDNN_OPTS={int(device.onednn)}) with "
        f"{device.intra_threads} intra-op thread{'s' * (device.intra_threads != 1)}, as in this process."
    ]
