"""Matrix products on a CPU: in 16 bits they are computed in 32, and of 8 bits in the type of the result.

Source: `matmul_op_impl.h` (`BatchMatMulOp`, `BCast`) in `tensorflow/core/kernels`; the same in 48 measured products.
oneDNN multiplies bfloat16 as it is, with buffers of its own of a few hundred kB a thread, which are not counted.
"""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace, elements, item_size

_FLOAT32 = 4


def product(kernel: Kernel) -> Workspace:
    """A product of two matrices or of two batches of them, with or without fused bias and activation."""
    if not kernel.is_half or kernel.by_onednn:
        return NONE
    cast = [*kernel.inputs[:2], kernel.outputs[0]]
    return Workspace(after=[_FLOAT32 * elements(one) for one in cast])


def of_other_type(kernel: Kernel) -> Workspace:
    """A product of another type than what is multiplied, such as `int32` of `int8`: both are converted first."""
    made = kernel.outputs[0].dtype
    cast = [item_size(made) * elements(one) for one in kernel.inputs[:2]]
    return NONE if all(one.dtype == made for one in kernel.inputs[:2]) else Workspace(after=cast)
