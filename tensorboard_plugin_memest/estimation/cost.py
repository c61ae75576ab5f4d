"""About how long a kernel runs on a CPU: enough to tell which of two ops ends first, no more."""

from __future__ import annotations

import math

from tensorboard_plugin_memest.estimation.graph import Node, StepGraph

# A dispatched kernel, and a convolution's floating-point throughput; of the size that two cores of a server have.
LAUNCH_SECONDS = 3e-6
OPERATIONS_PER_SECOND = 5e10
# Bytes that elementwise kernels read and write, measured on such for tensors of 1 to 64 MiB: 24 to 48 GB/s into new
# memory and 90 to 200 in place; for tensors of 128 MiB, which no cache holds, 15 and 24.
BYTES_PER_SECOND = 5e10
IN_PLACE_BYTES_PER_SECOND = 1e11
UNCACHED_BYTES_PER_SECOND = 2e10
LARGEST_CACHED_BYTES = 3 * 2**26
# What sums up gradients does so in place, as a rule.
SUMS = {"Add", "AddV2", "AddN"}
# Products of matrices, measured on such with a second matrix of 9.4 MB and 1 to 128 rows in the first: up to 8 rows
# 0.3 to 0.6 ms, whatever is transposed; 32 rows 0.9 ms and 128 rows 3.0. From 32 rows on a transposed second matrix
# whose rows are long is packed first: 0.1 to 1 ms more for rows of 128, 1.5 for rows of 512, 3.3 for longer ones.
PRODUCT_OPERATIONS_PER_SECOND = 1.6e11
PRODUCT_BYTES_PER_SECOND = 2.5e10
PACKED_BYTES_PER_SECOND = 2.9e9
FEWEST_ROWS_PACKED_FOR = 16
SHORTEST_ROWS_PACKED = 512

# A kernel that has next to nothing to do, and what is small enough to be in a core's cache.
KERNEL_SECONDS = 1e-6
CACHED_BYTES = 2**20
CACHED_BYTES_PER_SECOND = 3e10
KERNEL_BYTES_PER_SECOND = 8e9
CYCLES_PER_SECOND = 2.5e9


def seconds(graph: StepGraph, index: int) -> float:
    """About how many seconds the kernel of node `index` runs."""
    node = graph.nodes[index]
    moved = _moved_bytes(graph, node)
    if "MatMul" in node.op and len(node.inputs) >= 2:
        product = max(moved / PRODUCT_BYTES_PER_SECOND, _operations(graph, node) / PRODUCT_OPERATIONS_PER_SECOND)
        return LAUNCH_SECONDS + product + _packing_seconds(graph, node)
    each = IN_PLACE_BYTES_PER_SECOND if node.op in SUMS else BYTES_PER_SECOND
    if moved > LARGEST_CACHED_BYTES:
        each = UNCACHED_BYTES_PER_SECOND
    return LAUNCH_SECONDS + moved / each + _operations(graph, node) / OPERATIONS_PER_SECOND


def _packing_seconds(graph: StepGraph, node: Node) -> float:
    """How long the second matrix of a product is rearranged first."""
    source, output = node.inputs[1]
    second, made = graph.nodes[source].outputs[output], node.outputs[0]
    if not any(name in node.attributes and node.attributes[name].b for name in ("transpose_b", "adj_y")):
        return 0.0
    rows = made.shape[-2] if made.shape and len(made.shape) > 1 else 1
    length = second.shape[-1] if second.shape else 1
    is_packed = rows >= FEWEST_ROWS_PACKED_FOR and length >= SHORTEST_ROWS_PACKED
    return second.bytes / PACKED_BYTES_PER_SECOND if is_packed else 0.0


def cycles(graph: StepGraph, index: int) -> float:
    """About how many cycles of the time stamp counter the kernel of node `index` takes, without what goes around it."""
    node = graph.nodes[index]
    moved = _moved_bytes(graph, node)
    each = CACHED_BYTES_PER_SECOND if moved <= CACHED_BYTES else KERNEL_BYTES_PER_SECOND
    return CYCLES_PER_SECOND * (KERNEL_SECONDS + moved / each + _operations(graph, node) / OPERATIONS_PER_SECOND)


def _moved_bytes(graph: StepGraph, node: Node) -> int:
    """Bytes that a kernel reads and writes."""
    read = sum(graph.nodes[source].outputs[output].bytes for source, output in node.inputs)
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
