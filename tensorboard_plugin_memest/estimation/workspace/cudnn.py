"""Convolutions on a GPU: the copies that TensorFlow makes for cuDNN.

cuDNN takes filters in another order than TensorFlow's, padding that is the same on both sides, and, where its tensor
cores do not compute in the type, images with channels first. What does not fit is copied. What cuDNN's own algorithm
takes besides is found by trying all of them in the first step, and nobody knows it before.

Source: `conv_ops_impl.h`, `conv_ops_gpu.cc` (`ComputeInNhwcEnabled`), `conv_grad_input_ops.cc`,
`conv_grad_filter_ops.cc` in `tensorflow/core/kernels`; read, not measured.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import tensorflow as tf

from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.graph import Output
from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace

_VOLTA, _AMPERE = (7, 0), (8, 0)

# MiB that a convolution may take where TF_CUDNN_WORKSPACE_LIMIT_IN_MB is not set: `conv_ops_gpu.h`.
_LIMIT = 8192


def convolution(kernel: Kernel) -> Workspace:
    """A convolution."""
    images, filters = kernel.inputs[:2]
    return _copies(kernel, images, filters, kernel.outputs[0])


def input_gradient(kernel: Kernel) -> Workspace:
    """The gradient of a convolution's input."""
    return _copies(kernel, kernel.outputs[0], kernel.inputs[1], kernel.inputs[2])


def filter_gradient(kernel: Kernel) -> Workspace:
    """The gradient of a convolution's filter."""
    return _copies(kernel, kernel.inputs[0], kernel.outputs[0], kernel.inputs[2])


def channels_first(dtype: str, device: Device) -> bool:
    """Whether cuDNN computes with channels first; a GPU of unknown capability is taken for one since Ampere."""
    capability = device.capability or _AMPERE
    if dtype == "float16":
        return capability < _VOLTA
    if dtype == "float32":
        return capability < _AMPERE or not tf.config.experimental.tensor_float_32_execution_enabled()
    return dtype != "bfloat16" or capability < _AMPERE


def workspace_limit() -> str:
    """MiB that cuDNN's algorithm for a single convolution may take at most."""
    return os.environ.get("TF_CUDNN_WORKSPACE_LIMIT_IN_MB", str(_LIMIT))


def _copies(kernel: Kernel, images: Output, filters: Output, made: Output) -> Workspace:
    if images.shape is None or filters.shape is None or made.shape is None:
        return NONE
    is_last = not kernel.text("data_format").startswith("NC")
    space = slice(1, -1) if is_last else slice(2, None)
    sizes, windows, pixels = images.shape[space], filters.shape[:-2], made.shape[space]
    strides = kernel.integers("strides")[space]
    dilations = kernel.integers("dilations")[space] or [1] * len(windows)
    is_grouped = images.shape[-1 if is_last else 1] != filters.shape[-2]
    if is_last and not is_grouped and _is_product(kernel, sizes, windows, [*strides, *dilations]):
        return NONE
    padded = list(sizes)
    if kernel.text("padding") == "SAME":
        for axis, stride in enumerate(strides):
            reach = (pixels[axis] - 1) * stride + (windows[axis] - 1) * dilations[axis] + 1
            # An odd number of pixels is one more at the end than at the beginning.
            padded[axis] += max(0, reach - sizes[axis]) % 2
    wide = images.bytes // max(1, math.prod(sizes)) * math.prod(padded)
    is_turned = is_last and channels_first(images.dtype, kernel.device)
    copies = [filters.bytes]
    if "BackpropInput" in kernel.op:
        # Always made apart, then cut or turned.
        copies.append(wide)
    else:
        copies += [wide] * ((padded != list(sizes)) + is_turned)
    return Workspace(after=[*copies, made.bytes] if is_turned else copies)


def _is_product(kernel: Kernel, sizes: Sequence[int], windows: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether cuBLAS multiplies matrices instead: windows of one pixel, or of the whole image."""
    if set(windows) == {1}:
        return set(steps) == {1} and kernel.text("padding") in ("SAME", "VALID")
    return tuple(windows) == tuple(sizes) and kernel.text("padding") == "VALID"
