"""Pooling on a CPU: the gradient of a maximum computes the maximum again, and where it lay.

Where each maximum lay is what oneDNN's kernel makes besides, and in a graph keeps (`places`); an eager op gives it up.
Source: `maxpooling_op.cc` (`MaxPoolingGradOp`) in `tensorflow/core/kernels`.
"""

from __future__ import annotations

from tensorboard_plugin_memest.estimation import places
from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace, elements

_INT64 = 8


def gradient_of_maximum(kernel: Kernel) -> Workspace:
    """The gradient of a 2D maximum pooling."""
    if len(kernel.inputs) == places.INPUTS:
        # oneDNN kept where it lay.
        return NONE
    pooled = kernel.inputs[1]
    return Workspace(before=[pooled.bytes, _INT64 * elements(pooled)], taken_over=1, becomes=0)


def maximum(kernel: Kernel) -> Workspace:
    """A maximum pooling."""
    size = places.size_of_places(kernel.node) if kernel.device.onednn else 0
    # In a graph they are an output.
    return Workspace(after=[size]) if size and len(kernel.outputs) == 1 else NONE
