"""Convolutions in functions that XLA compiles, which is what Keras does with grouped ones on a CPU.

Source: `conv` in Keras' TensorFlow backend; what real steps of three networks allocated.
"""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.workspace.kernel import Kernel, Workspace


def gradients(kernel: Kernel) -> Workspace:
    """What XLA takes while it computes both gradients: those of the result and the filter once more, in another order.

    It computes them in one, so each is given what both have together. The images, once more, lie where their gradient
    will.
    """
    filters = kernel.outputs[0] if "Filter" in kernel.op else kernel.inputs[1]
    return Workspace(after=[kernel.inputs[2].bytes + filters.bytes])
