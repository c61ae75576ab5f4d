"""Which kernels need workspace, and how much: every op that is known to, by its type."""

from __future__ import annotations

from collections.abc import Callable

from tensorboard_plugin_memest.estimation.device import GPU, Device
from tensorboard_plugin_memest.estimation.graph import StepGraph
from tensorboard_plugin_memest.estimation.workspace import (
    collective,
    compiled,
    convolution,
    cudnn,
    einsum,
    loss,
    matmul,
    normalization,
    pooling,
    reduction,
)
from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace
from tensorboard_plugin_memest.memory.limits import CAPABILITY_UNKNOWN

Rules = dict[str, Callable[[Kernel], Workspace]]

# Ops whose kernels are written once for every device.
_ANY: Rules = {
    "Einsum": einsum.einsum,
    **dict.fromkeys(("Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm"), reduction.reduction),
    "SoftmaxCrossEntropyWithLogits": loss.cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": loss.cross_entropy,
}

_CPU: Rules = {
    **_ANY,
    "Conv2D": convolution.convolution,
    "_FusedConv2D": convolution.convolution,
    "Conv2DBackpropFilter": convolution.filter_gradient,
    "Conv2DBackpropInput": convolution.input_gradient,
    "Conv3D": convolution.convolution,
    "_FusedConv3D": convolution.convolution,
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
    "BatchMatMulV3": matmul.of_other_type,
    **dict.fromkeys(("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), normalization.gradient),
    **dict.fromkeys(("MaxPool", "MaxPool3D"), pooling.maximum),
    "MaxPoolGrad": pooling.gradient_of_maximum,
    "CollectiveReduceV2": collective.ring,
}


_GPU: Rules = {
    **_ANY,
    **dict.fromkeys(("Conv2D", "_FusedConv2D", "Conv3D"), cudnn.convolution),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), cudnn.input_gradient),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), cudnn.filter_gradient),
}


# In a function that XLA compiles, on a CPU.
_COMPILED: Rules = dict.fromkeys(
    ("Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2"),
    compiled.gradients,
)


def workspace_of(kernel: Kernel, *, by_xla: bool = False) -> Workspace:
    """What a kernel allocates for itself while it runs, or XLA in its place."""
    rules = _GPU if kernel.device.kind == GPU else _COMPILED if by_xla else _CPU
    rule = rules.get(kernel.op)
    return rule(kernel) if rule else NONE


def workspaces_of(graph: StepGraph, device: Device, *, by_xla: bool = False) -> dict[int, Workspace]:
    """The workspace of every node of `graph` that needs some, by its index.

    Args:
        graph: the graph.
        device: what runs it.
        by_xla: whether it is the graph of a function that XLA compiles.
    """
    found = {index: workspace_of(Kernel(graph, node, device), by_xla=by_xla) for index, node in enumerate(graph.nodes)}
    return {index: workspace for index, workspace in found.items() if workspace}


def workspace_notes(device: Device) -> list[str]:
    """What the estimate takes for granted about workspace on `device`, as sentences."""
    if device.kind == GPU:
        notes = [
            "Kernel workspace on a GPU counts the copies that TensorFlow makes for cuDNN, not what cuDNN's and cuBLAS' "
            "own algorithms take: cuDNN tries all in the first step, each with at most "
            f"{cudnn.workspace_limit()} MiB (TF_CUDNN_WORKSPACE_LIMIT_IN_MB), and keeps the fastest."
        ]
        if device.capability is None:
            notes.append(CAPABILITY_UNKNOWN)
        return notes
    kernels = "oneDNN" if device.onednn else "TensorFlow's own"
    return [
        f"Kernel workspace is that of {kernels} kernels (TF_ENABLE_ONEDNN_OPTS={int(device.onednn)}) with "
        f"{device.intra_threads} intra-op thread{'s' * (device.intra_threads != 1)}, as in this process."
    ]
