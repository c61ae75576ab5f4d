"""Convolutions in functions that XLA compiles, which is what Keras does with grouped ones on a CPU.

Source: `conv` in Keras' TensorFlow backend; what real steps of three networks allocated.
"""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.workspace.kernel import Kernel, Workspace


def gradients(kernel: Kernel) -> Workspace:
    """What XLA takes while it computes both gradients: those of the result and the filter once more, in another order.

    It computes them in one, so each is given what both have together. The images, once more, lie where their gradient
    will. Where each channel has one filter of its own, XLA makes one of all, with zeros for what a channel does not see
    of the others, and so the filter's gradient, too. Ten layers of one and two dimensions took exactly that.
    """
    of_filter = "Filter" in kernel.op
    images, filters = (kernel.inputs[0], kernel.outputs[0]) if of_filter else (kernel.outputs[0], kernel.inputs[1])
    results = kernel.inputs[2].bytes
    if not images.shape or not filters.shape or filters.shape[-2:] != (1, images.shape[-1]):
        return Workspace(after=[results + filters.bytes])
    dense = filters.shape[-1] * filters.bytes
    return Workspace(after=[dense + max(dense, results)])
