"""Convolutions on a CPU.

Without oneDNN, the gradients of a convolution unfold the images into columns (im2col) and multiply matrices. How many
images are unfolded at once follows from a cache that the columns are meant to fill, not from the batch: a small layer
gets a buffer of about 30 MB whatever its batch.

Source: `conv_grad_filter_ops.cc`, `conv_grad_input_ops.h`, `conv_grad_ops_3d.cc`, `depthwise_conv_op.cc`,
`depthwise_conv_grad_op.cc` in `tensorflow/core/kernels`; `brgemm_convolution` in oneDNN.
"""

from __future__ import annotations

import math
from functools import cache

from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace, item_size

# The cache sizes that `conv_grad_filter_ops.cc` and `conv_grad_input_ops.h` take for granted.
L2_CACHE = 256 * 2**10
L3_CACHE = 30 * 2**20

# `kMaxTempAllocationOverhead` of `conv_grad_ops_3d.cc`: with larger columns than so many times the tensors, Eigen
# convolves without.
MOST_COLUMNS = 25

# Elements that Eigen's widest register of TensorFlow's own builds (AVX) holds; of double, half as many.
PACKET = 8

# What oneDNN's convolution asks for, for itself and for each thread: measured with oneDNN 3 on AVX-512, in 90
# convolutions, of which those with one input channel alone asked for more (up to 102 kB).
PAGE = 4096
PER_THREAD = 24


def filter_gradient(kernel: Kernel) -> Workspace:
    """The gradient of a 2D convolution's filter."""
    filters, given = kernel.outputs[0].shape, kernel.inputs[2].shape
    if filters is None or given is None or kernel.by_onednn:
        return NONE
    size, work = _column_size(filters, given), _work(filters, given)
    images = math.ceil(L3_CACHE // item_size(kernel.outputs[0].dtype) / work)
    return Workspace(after=[images * size * item_size(kernel.outputs[0].dtype)])


def input_gradient(kernel: Kernel) -> Workspace:
    """The gradient of a 2D convolution's input, which is also the transposed convolution."""
    filters, given = kernel.inputs[1].shape, kernel.inputs[2].shape
    if filters is None or given is None or kernel.by_onednn:
        return NONE
    item = item_size(kernel.outputs[0].dtype)
    size, work = _column_size(filters, given), _work(filters, given)
    # One image after another where a single one keeps all threads busy.
    is_large = given[0] == 1 or work // kernel.device.intra_threads >= L2_CACHE // item
    images = 1 if is_large else math.ceil(L3_CACHE // item / work)
    return Workspace(after=[images * size * item])


def gradient_3d(kernel: Kernel) -> Workspace:
    """The gradients of a 3D convolution."""
    of_filter = "Filter" in kernel.op
    image = kernel.inputs[0].shape if of_filter else kernel.outputs[0].shape
    filters = kernel.outputs[0].shape if of_filter else kernel.inputs[1].shape
    given = kernel.inputs[2].shape
    if image is None or filters is None or given is None or kernel.by_onednn:
        return NONE
    item = item_size(kernel.outputs[0].dtype)
    size = _column_size(filters, given)
    is_alone = given[0] == 1 and not of_filter
    images = 1 if is_alone else math.ceil(l3_cache() // item / _work(filters, given))
    if images * size // (math.prod(image) + math.prod(filters) + math.prod(given)) > MOST_COLUMNS:
        return NONE
    return Workspace(after=[images * size * item])


def convolution(kernel: Kernel) -> Workspace:
    """A convolution itself, with or without fused bias and activation."""
    if not kernel.by_onednn:
        # Eigen unfolds block by block, in memory that is not the device's; only groups are put in order before.
        images, filters = kernel.inputs[:2]
        is_grouped = images.shape is not None and filters.shape is not None and images.shape[-1] != filters.shape[-2]
        return Workspace(after=[images.bytes, filters.bytes, kernel.outputs[0].bytes]) if is_grouped else NONE
    threads = kernel.device.intra_threads
    return Workspace(after=[PAGE * (threads + 1) + PER_THREAD * threads])


def depthwise(kernel: Kernel) -> Workspace:
    """A depthwise convolution and its gradients."""
    if kernel.by_onednn:
        return NONE
    of_filter, of_input = "BackpropFilter" in kernel.op, "BackpropInput" in kernel.op
    filters = kernel.outputs[0].shape if of_filter else kernel.inputs[1].shape
    given = kernel.inputs[2].shape if of_filter or of_input else kernel.outputs[0].shape
    if filters is None or given is None:
        return NONE
    dtype = kernel.outputs[0].dtype
    packet = PACKET // 2 if dtype == "float64" else PACKET
    channels = filters[2] * filters[3]
    row = math.ceil(channels / packet) * packet * item_size(dtype)
    taps = filters[0] * filters[1] * row
    if of_filter:
        # Each image's own gradient, summed up at the end.
        return Workspace(after=[given[0] * taps, taps])
    padded = [taps] if channels % packet else []
    return Workspace(after=[*padded, taps, row] if of_input else [*padded, taps])


@cache
def l3_cache() -> int:
    """Bytes of the L3 cache as Eigen sees it: on some processors that of the whole socket."""
    # Only here, because it starts TensorFlow's profiling of devices; it is Eigen's own answer.
    from tensorflow.python.grappler import cluster

    found = cluster.Cluster(disable_detailed_stats=True).ListDevices()
    return next(int(device.properties.l3_cache_size) for device in found if device.properties.type == "CPU")


def _column_size(filters: tuple[int, ...], given: tuple[int, ...]) -> int:
    """Elements of one unfolded image: a row of the filter's size for each pixel of the convolution's output."""
    return math.prod(given[1:-1]) * math.prod(filters[:-1])


def _work(filters: tuple[int, ...], given: tuple[int, ...]) -> int:
    """Elements that the matrix product of one image touches."""
    return _column_size(filters, given) + math.prod(given[1:]) + math.prod(filters)
