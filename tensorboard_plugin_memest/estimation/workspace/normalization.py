"""Batch normalization on a CPU.

Source: `fused_batch_norm_op.cc` in `tensorflow/core/kernels` (`FusedBatchNormGrad`, `FusedBatchNormFreezeGrad`).
"""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace, elements

_FLOAT32 = 4


def gradient(kernel: Kernel) -> Workspace:
    """The gradient of a fused batch normalization."""
    if kernel.by_onednn:
        return NONE
    is_training = kernel.attributes["is_training"].b if "is_training" in kernel.attributes else True
    channels = _FLOAT32 * elements(kernel.inputs[2])
    # In 16 bits the gradient is computed in 32 first.
    wide = [_FLOAT32 * elements(kernel.outputs[0])] if kernel.is_half else []
    return Workspace(after=[channels] * (1 if is_training else 2) + wide)
