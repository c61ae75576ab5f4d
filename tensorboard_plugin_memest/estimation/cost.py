"""About how long a kernel runs on a CPU: enough to tell which of two ops ends first, and which are quick, no more.

Measured on two cores of a server, on kernels by themselves and in steps of recurrent networks, whose kernels a profile
times.
"""

from __future__ import annotations

import math

from tensorboard_plugin_memest.estimation.graph import Node, StepGraph

# What dispatching a kernel takes beside it, and a kernel that has next to nothing to do.
LAUNCH_SECONDS = 3e-6
KERNEL_SECONDS = 7e-7
# What makes or takes several pieces, and what works out first how its inputs fit each other.
PIECES_SECONDS = 1e-6
PIECES = {"Split", "SplitV", "ConcatV2", "Pack", "SelectV2"}
# Lists of tensors, element by element: 4 to 19 us.
OF_LISTS_SECONDS = 5e-6
OF_LISTS = {"AddN", "ZerosLike"}

# Bytes that kernels read and write. Elementwise ones: what fits a core's cache at 110 to 190 GB/s where it was used
# just before; then what several cores share, which have to be woken up, at 20 to 50 GB/s into new memory and 40 to 90
# in place; from some 100 MB on at 15 to 24, in place 40.
CACHED_BYTES = 2**20
CACHED_BYTES_PER_SECOND = 1e11
WAKING_SECONDS = 4e-5
BYTES_PER_SECOND = 5e10
IN_PLACE_BYTES_PER_SECOND = 7e10
LARGEST_CACHED_BYTES = 2**27
UNCACHED_BYTES_PER_SECOND = 2e10
UNCACHED_IN_PLACE_BYTES_PER_SECOND = 4e10
# What sums up gradients does so in place, as a rule, and what changes a variable.
UPDATES = {"AssignAddVariableOp", "AssignSubVariableOp"}
SUMS = {"Add", "AddV2", "AddN"} | UPDATES
# Kernels that take longer for as many bytes, and in half precision, where each element is converted there and back.
SLOW_BYTES_PER_SECOND = {
    "Sigmoid": 1.7e10, "Tanh": 3e10, "BiasAdd": 6.5e10, "SelectV2": 4e10, "Sum": 4e10, "StridedSliceGrad": 7e9,
}  # fmt: skip
HALF_BYTES_PER_SECOND = {
    "Sigmoid": 2.1e9, "Tanh": 6e9, "SigmoidGrad": 7e9, "TanhGrad": 7e9, "BiasAdd": 1.6e10, "BiasAddGrad": 9e9,
    "Sum": 1.5e10, "Mul": 2.7e10, "Sub": 2.7e10, "Add": 2.7e10, "AddV2": 2.7e10, "AddN": 2.7e10,
}  # fmt: skip
HALF = {"half", "float16", "bfloat16"}
# Ops that hand on what they get: nothing is moved.
HANDING_ON = {
    "AssignVariableOp", "OptionalFromValue", "OptionalGetValue", "ReadVariableOp", "TensorListGetItem",
    "TensorListPopBack", "TensorListPushBack", "TensorListSetItem",
}  # fmt: skip

# Products of matrices: up to 8 rows they take what reading the second matrix does, 28 to 60 GB/s, then what computing
# does. If it is transposed, a few rows take 1.5 to 1.8 times as long; from 16 rows on one of 1 MiB is packed first
# unless its rows are short: at 6 GB/s, or at 1.3 to 3.3 where rows are a multiple of 4 KiB apart and compete for the
# same places in the cache.
OPERATIONS_PER_SECOND = 5e10
PRODUCT_OPERATIONS_PER_SECOND = 1.6e11
PRODUCT_BYTES_PER_SECOND = 2.5e10
FEWEST_ROWS_PACKED_FOR = 16
FEW_ROWS_FACTOR = 1.6
SHORTEST_ROWS_PACKED = 512
SMALLEST_PACKED_BYTES = 2**20
PACKED_BYTES_PER_SECOND = 6e9
COMPETING_BYTES_PER_SECOND = 2.2e9
COMPETING_BYTES = 4096

CYCLES_PER_SECOND = 2.5e9


def seconds(graph: StepGraph, index: int) -> float:
    """About how many seconds node `index` takes."""
    return LAUNCH_SECONDS + _kernel_seconds(graph, graph.nodes[index])


def cycles(graph: StepGraph, index: int) -> float:
    """About how many cycles of the time stamp counter the kernel of node `index` takes, without what goes around it."""
    return CYCLES_PER_SECOND * _kernel_seconds(graph, graph.nodes[index])


def _kernel_seconds(graph: StepGraph, node: Node) -> float:
    if "MatMul" in node.op and len(node.inputs) >= 2:
        return KERNEL_SECONDS + _product_seconds(graph, node)
    dtype = node.outputs[0].dtype if node.outputs else ""
    if dtype == "variant" and node.op in OF_LISTS:
        return OF_LISTS_SECONDS
    if node.op in HANDING_ON:
        return KERNEL_SECONDS
    begins = KERNEL_SECONDS + (PIECES_SECONDS if node.op in PIECES else 0)
    return begins + _moving_seconds(graph, node, dtype) + _operations(graph, node) / OPERATIONS_PER_SECOND


def _moving_seconds(graph: StepGraph, node: Node, dtype: str) -> float:
    moved, in_place = _moved_bytes(graph, node), node.op in SUMS
    if moved > LARGEST_CACHED_BYTES:
        return moved / (UNCACHED_IN_PLACE_BYTES_PER_SECOND if in_place else UNCACHED_BYTES_PER_SECOND)
    if moved > CACHED_BYTES:
        return WAKING_SECONDS + moved / (IN_PLACE_BYTES_PER_SECOND if in_place else BYTES_PER_SECOND)
    slow = HALF_BYTES_PER_SECOND if dtype in HALF else SLOW_BYTES_PER_SECOND
    return moved / slow.get(node.op, CACHED_BYTES_PER_SECOND)


def _product_seconds(graph: StepGraph, node: Node) -> float:
    source, output = node.inputs[1]
    second, made = graph.nodes[source].outputs[output], node.outputs[0]
    reading = _moved_bytes(graph, node) / PRODUCT_BYTES_PER_SECOND
    computing = _operations(graph, node) / PRODUCT_OPERATIONS_PER_SECOND
    if not any(name in node.attributes and node.attributes[name].b for name in ("transpose_b", "adj_y")):
        return max(reading, computing)
    rows = made.shape[-2] if made.shape and len(made.shape) > 1 else 1
    if rows < FEWEST_ROWS_PACKED_FOR:
        return max(reading, computing) * (FEW_ROWS_FACTOR if rows > 1 else 1)
    length = second.shape[-1] if second.shape else 1
    if length < SHORTEST_ROWS_PACKED or second.bytes < SMALLEST_PACKED_BYTES:
        return max(reading, computing)
    apart = length * (second.bytes // max(1, math.prod(second.shape or (1,))))
    each = PACKED_BYTES_PER_SECOND if apart % COMPETING_BYTES else COMPETING_BYTES_PER_SECOND
    return max(reading, computing) + second.bytes / each


def _moved_bytes(graph: StepGraph, node: Node) -> int:
    """Bytes that a kernel reads and writes."""
    read = sum(graph.nodes[source].outputs[output].bytes for source, output in node.inputs)
    if node.op in UPDATES:
        # The variable, as large as what is added to it, is read and written.
        return 3 * read
    return read + sum(output.bytes for output in node.outputs)


def _operations(graph: StepGraph, node: Node) -> float:
    shapes = [graph.nodes[source].outputs[output].shape for source, output in node.inputs]
    made = node.outputs[0].shape if node.outputs else None
    if "MatMul" in node.op and made and len(shapes) >= 2 and shapes[0]:
        # Each element of the result is a dot product over the dimension that the inputs share.
        return 2.0 * math.sqrt(math.prod(shapes[0]) * math.prod(shapes[1] or (1,)) * math.prod(made))
    if "Conv" in node.op and "Backprop" not in node.op and made and len(shapes) >= 2 and shapes[1]:
        return 2.0 * math.prod(made) * math.prod(shapes[1][:-1])
    if "Conv" in node.op and made:
        # A gradient of a convolution costs what the convolution does: the incoming gradient times the filter.
        kernel = made if "Filter" in node.op else shapes[1]
        incoming = shapes[-1]
        return 2.0 * math.prod(incoming or (1,)) * math.prod((kernel or (1,))[:-1])
    return 0.0
