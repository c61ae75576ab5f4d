"""Small tensors that TensorFlow keeps on the host beside a model's: on a CPU they lie in the pool that is measured.

Each takes one chunk of the allocator. There are some for every variable and every layer, so that in a deep network
they add up to a percent of a step.
"""

from __future__ import annotations

import math

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, tensor_pb2, types_pb2

from tensorboard_plugin_memest.estimation.events import ALLOCATE, Buffer, Event
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.variables import STEP
from tensorboard_plugin_memest.memory.category import Category

# Inputs whose values an op's shape depends on: while a function is traced, TensorFlow looks at them, and keeps what it
# saw. Source: the shape functions in `tensorflow/core/ops`; negative positions count from the last input.
_SHAPING = {
    "All": [1], "Any": [1], "ArgMax": [1], "ArgMin": [1], "AvgPoolGrad": [0], "BatchToSpaceND": [1, 2],
    "Bincount": [1], "BroadcastTo": [1], "ConcatOffset": [0], "ConcatV2": [-1], "Conv2DBackpropFilter": [1],
    "Conv2DBackpropInput": [0], "Conv3DBackpropFilterV2": [1], "Conv3DBackpropInputV2": [0], "Cumprod": [1],
    "Cumsum": [1], "DepthwiseConv2dNativeBackpropFilter": [1], "DepthwiseConv2dNativeBackpropInput": [0],
    "ExpandDims": [1], "Fill": [0], "GatherV2": [2], "LinSpace": [2], "Max": [1], "Mean": [1], "Min": [1],
    "MirrorPad": [1], "OneHot": [1], "Pad": [1], "PadV2": [1], "Prod": [1], "RandomStandardNormal": [0],
    "RandomUniform": [0], "RandomUniformInt": [0], "Range": [0, 1, 2], "Reshape": [1], "ResizeBicubic": [1],
    "ResizeBilinear": [1], "ResizeNearestNeighbor": [1], "ReverseV2": [1], "Roll": [1, 2], "ScatterNd": [2],
    "Slice": [1, 2], "SpaceToBatchND": [1, 2], "Split": [0], "SplitV": [1, 2], "StatelessRandomNormalV2": [0],
    "StatelessRandomUniformV2": [0], "StatelessTruncatedNormalV2": [0], "StridedSlice": [1, 2, 3],
    "StridedSliceGrad": [0, 1, 2, 3], "Sum": [1], "TensorListFromTensor": [1], "TensorListReserve": [0], "Tile": [1],
    "TopKV2": [1], "Transpose": [1], "TruncatedNormal": [0], "UnsortedSegmentSum": [2],
}  # fmt: skip

# Larger values are not kept (`kMaxTensorSize` in `shape_refiner.h`).
_LARGEST_BYTES = 64


HANDLE = Tag(STEP, "handles", Category.CONSTANTS, "handles of variables, on the host", None, None, None)
VALUE = Tag(STEP, "shapes", Category.CONSTANTS, "values that shapes depend on, kept by traces", None, None, None)

# There are too many to tell apart; their tags are shared.
SHARED = {HANDLE, VALUE}

_HANDLE_BYTES, _VALUE_BYTES = 200, 16


def handle_event() -> Event:
    """A variable's handle comes to be; it is a tensor."""
    return Event(ALLOCATE, Buffer(_HANDLE_BYTES, references=1, is_resident=True), HANDLE.name, HANDLE)


def trace_events(values: int) -> list[Event]:
    """A function is traced, which leaves that many small values behind for as long as the function is there."""
    buffers = [Buffer(_VALUE_BYTES, references=1, is_resident=True) for _ in range(values)]
    return [Event(ALLOCATE, buffer, VALUE.name, VALUE) for buffer in buffers]


def kept_by_trace(definition: graph_pb2.GraphDef) -> int:
    """How many constants of a traced function are kept because shapes depend on their values."""
    small = {node.name for node in definition.node if node.op == "Const" and _is_small(node.attr["value"].tensor)}
    kept: set[str] = set()
    for node in definition.node:
        given = [name.removesuffix(":0") for name in node.input if not name.startswith("^")]
        kept.update(given[position] for position in _SHAPING.get(node.op, ()) if -len(given) <= position < len(given))
    return len(kept & small)


def _is_small(tensor: tensor_pb2.TensorProto) -> bool:
    if tensor.dtype not in (types_pb2.DT_INT32, types_pb2.DT_INT64):
        return False
    elements: int = math.prod(dimension.size for dimension in tensor.tensor_shape.dim)
    return 0 < elements * int(tf.as_dtype(tensor.dtype).size) <= _LARGEST_BYTES
