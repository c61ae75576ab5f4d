"""Workspace of sums over replicas."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace


def ring(kernel: Kernel) -> Workspace:
    """What TensorFlow's ring takes on a CPU: a part of the sum for each replica but one.

    The tensor is cut into as many parts as there are replicas, and each part that arrives from the neighbour lies in
    memory of its own until it is added (`RingReducer::InitRingField` in
    `tensorflow/core/common_runtime/ring_reducer.cc`). NCCL, on GPUs, has buffers of its own that the allocator does not
    count.
    """
    size = kernel.value(1)
    if size is None or int(size) < 2:
        return NONE
    return Workspace(after=[-(-kernel.outputs[0].bytes // int(size))] * (int(size) - 1))
