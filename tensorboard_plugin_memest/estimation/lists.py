"""TensorLists: how loops pile up tensors for the backward pass, one element an iteration; and optionals.

An optional, such as a loop over batches gets from its iterator, is a list, too: it holds the tensors of one batch.

Source of the rules: `tensorflow/core/kernels/list_kernels.cc`, `tensorflow/core/kernels/data/optional_ops.cc`. A list
holds references to its elements' memory; pushing and setting share the tensor, `TensorListFromTensor` copies each row,
`TensorListStack` makes one new tensor. Zeros like a list, and sums of lists, are lists of as many new tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import tensorflow as tf

from tensorboard_plugin_memest.estimation.events import Buffer, TensorList
from tensorboard_plugin_memest.estimation.graph import Node, StepGraph, constant_value
from tensorboard_plugin_memest.estimation.variables import size_in_bytes

LIST_OPS = {
    "EmptyTensorList", "TensorListReserve", "TensorListFromTensor", "TensorListPushBack", "TensorListSetItem",
    "TensorListGetItem", "TensorListPopBack", "IteratorGetNextAsOptional", "OptionalFromValue", "OptionalGetValue",
    "ZerosLike", "AddN",
}  # fmt: skip

Allocate = Callable[[int, int], Buffer]  # (output of the node that the memory is for, bytes)


@dataclass(frozen=True)
class ListResult:
    """What a TensorList op makes, and the elements that the list gives up."""

    outputs: list[Buffer | None]
    dropped: tuple[Buffer | None, ...] = ()


def list_result(
    graph: StepGraph,
    index: int,
    inputs: Sequence[Buffer | None],
    iteration: int,
    allocate: Allocate,
    known: int | None = None,
) -> ListResult | None:
    """Runs a TensorList op.

    Args:
        graph: the graph that holds the node.
        index: the node.
        inputs: what its inputs hold.
        iteration: number of the loop's iteration it runs in: which element it reads or writes, if that is not known.
        allocate: makes memory.
        known: what its second input says, if that is known: which element is meant, or how many there will be.

    Returns:
        Its result; None if the node is no op on a list that is known.
    """
    node = graph.nodes[index]
    given = inputs[0] if inputs and isinstance(inputs[0], TensorList) else None
    match node.op:
        case "IteratorGetNextAsOptional":
            return ListResult([TensorList([_held(allocate(0, size)) for size in _element_sizes(node)])])
        case "OptionalFromValue":
            return ListResult([TensorList([_held(value) for value in inputs])])
        case "OptionalGetValue" if given and len(given.elements) == len(node.outputs):
            return ListResult(list(given.elements))
        case "EmptyTensorList":
            return ListResult([TensorList([])])
        case "TensorListReserve":
            size = known if known is not None else constant_value(graph.nodes[node.inputs[1][0]])
            return ListResult([TensorList([None] * (int(size) if size is not None else 0))])
        case "TensorListFromTensor":
            tensor = graph.nodes[node.inputs[0][0]].outputs[node.inputs[0][1]]
            rows = tensor.shape[0] if tensor.shape else 0
            return ListResult([TensorList([_held(allocate(0, tensor.bytes // rows)) for _ in range(rows)])])
        case "ZerosLike" if given:
            zeros = [element and _held(allocate(0, element.bytes)) for element in given.elements]
            return ListResult([TensorList(zeros)])
        case "AddN" if given:
            lists = [given_list.elements for given_list in inputs if isinstance(given_list, TensorList)]
            # How long a list is meant to be is not always known.
            return ListResult([TensorList([_sum(elements, allocate) for elements in zip_longest(*lists)])])
        case "TensorListPushBack" if given:
            made = _writable(given)
            made.elements.append(_held(inputs[1]))
            return ListResult([made])
        case "TensorListSetItem" if given:
            made = _writable(given)
            # A list may grow where it is written to, and how long it was meant to be is not always known.
            position = _position(made, iteration, None) if known is None else known
            made.elements += [None] * (position + 1 - len(made.elements))
            replaced = made.elements[position]
            made.elements[position] = _held(inputs[2])
            return ListResult([made], (replaced,))
        case "TensorListGetItem" if given and given.elements:
            element = given.elements[_position(given, iteration, known)]
            return ListResult([element or allocate(0, node.outputs[0].bytes)])
        case "TensorListPopBack" if given and given.elements:
            made = _writable(given)
            last = made.elements.pop()
            return ListResult([made, last or allocate(1, node.outputs[1].bytes)], (last,))
    return None


def _sum(elements: Sequence[Buffer | None], allocate: Allocate) -> Buffer | None:
    """The sum of elements of several lists; one that is alone is shared."""
    there = [element for element in elements if element is not None]
    return _held(there[0] if len(there) == 1 else allocate(0, there[0].bytes)) if there else None


def _position(given: TensorList, iteration: int, known: int | None) -> int:
    """Which element of a list is meant."""
    position = iteration if known is None else known
    return position % len(given.elements) if given.elements else position


def _element_sizes(node: Node) -> list[int]:
    """Bytes of the tensors of a batch; 0 for those whose size is not known."""
    types, shapes = node.attributes["output_types"].list.type, node.attributes["output_shapes"].list.shape
    known = [tf.TensorShape(shape) for shape in shapes]
    return [
        size_in_bytes(shape, tf.as_dtype(dtype)) if shape.is_fully_defined() else 0
        for dtype, shape in zip(types, known, strict=True)
    ]


def _held(buffer: Buffer | None) -> Buffer | None:
    if buffer is not None:
        buffer.references += 1
    return buffer


def _writable(given: TensorList) -> TensorList:
    """A list with the elements of `given`: they move if nobody else reads it, else both hold them."""
    if given.references == 1:
        made = TensorList(given.elements)
        given.elements = []
        return made
    return TensorList([_held(element) for element in given.elements])
