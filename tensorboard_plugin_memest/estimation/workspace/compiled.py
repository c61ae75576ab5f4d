"""Convolutions in functions that XLA compiles, which is what Keras does with grouped ones on a CPU.

Source: `conv` in Keras' TensorFlow backend; XLA's own buffer assignment of nine grouped convolutions in one to three
dimensions, to the byte but for depthwise ones (2 % more), dilated ones and windows of one pixel.
"""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.workspace.kernel import Kernel, Workspace


def gradients(kernel: Kernel) -> Workspace:
    """What XLA takes while it computes both gradients: images, result and filter once more, in another order.

    It computes them in one, so each is given what both have together.
    """
    of_filter = "Filter" in kernel.op
    images = kernel.inputs[0] if of_filter else kernel.outputs[0]
    filters = kernel.outputs[0] if of_filter else kernel.inputs[1]
    return Workspace(after=[images.bytes, kernel.inputs[2].bytes + filters.bytes])
