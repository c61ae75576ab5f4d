"""Sums, means, maxima and the like on a CPU: a transposed copy where reduced and kept dimensions alternate.

Source: `reduction_ops_common.h` (`ReductionHelper`) in `tensorflow/core/kernels`.
"""

from __future__ import annotations

from itertools import groupby

from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace

# Runs of dimensions that are alike, up to which Eigen reduces a tensor as it lies.
MOST_RUNS = 3


def reduction(kernel: Kernel) -> Workspace:
    """A reduction over the dimensions in its second input."""
    given, axes = kernel.inputs[0], kernel.value(1)
    if given.shape is None or axes is None:
        return NONE
    reduced = {int(axis) % max(1, len(given.shape)) for axis in axes.flat}
    runs = groupby(axis in reduced for axis, size in enumerate(given.shape) if size != 1)
    return Workspace(after=[given.bytes]) if sum(1 for _ in runs) > MOST_RUNS else NONE
