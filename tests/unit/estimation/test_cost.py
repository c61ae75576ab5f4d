"""About how long kernels run, held against what was measured on two cores; within a factor of two is close enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from tensorboard_plugin_memest.estimation.cost import CYCLES_PER_SECOND, cycles, seconds
from tensorboard_plugin_memest.estimation.graph import StepGraph
from tests.unit.estimation.graphs import F, graph, node

MILLISECOND = 1e-3


def product(left: tuple[int, int], right: tuple[int, int], made: tuple[int, int], *, transposed: bool) -> StepGraph:
    step = graph(
        node("left", "Placeholder", (), 1),
        node("right", "Placeholder", (), 1),
        node("product", "MatMul", ["left", "right"], 1, transpose_b=AttrValue(b=transposed)),
    )
    for one, shape in zip(step.nodes, (left, right, made), strict=True):
        one.outputs = [replace(one.outputs[0], shape=shape, bytes=shape[0] * shape[1] * F)]
    return step


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "forward", "of_input", "of_weight"),
    [
        (1, 768, 3072, 0.33, 0.28, 0.54),
        (1, 200_000, 128, 4.58, 7.63, 5.44),
        (8, 768, 3072, 0.39, 0.43, 0.56),
        (32, 768, 3072, 0.89, 4.32, 0.92),
        (32, 18432, 128, 0.61, 1.08, 0.65),
        (128, 768, 3072, 3.0, 6.14, 2.76),
        (64, 192, 768, 0.093, 0.107, 0.081),
        (16, 512, 1536, 0.159, 0.662, 0.16),
        (16, 1024, 4096, 1.24, 11.0, 1.16),
    ],
)
def test_what_a_dense_layers_products_take(rows, inner, columns, forward, of_input, of_weight):
    x, w, y = (rows, inner), (inner, columns), (rows, columns)
    found = [
        seconds(product(x, w, y, transposed=False), 2),
        seconds(product(y, w, x, transposed=True), 2),
        seconds(product(x, y, w, transposed=False), 2),
    ]
    for one, measured in zip(found, (forward, of_input, of_weight), strict=True):
        assert measured / 2 < one / MILLISECOND < measured * 2


@pytest.mark.parametrize(
    ("op", "elements", "measured"),
    [("AddN", 768 * 3072, 0.3), ("Mul", 2**22, 1.4), ("Mul", 2**25, 26)],
)
def test_what_elementwise_kernels_take_is_to_move_bytes(op, elements, measured):
    step = graph(
        node("left", "Placeholder", (), elements),
        node("right", "Placeholder", (), elements),
        node("made", op, ["left", "right"], elements),
    )
    assert measured / 2 < seconds(step, 2) / MILLISECOND < measured * 2


@pytest.mark.parametrize(("elements", "measured"), [(2**22, 0.65), (2**25, 12)])
def test_what_changes_a_variable_reads_and_writes_it(elements, measured):
    step = graph(
        node("handle", "VarHandleOp"),
        node("value", "Placeholder", (), elements),
        node("made", "AssignAddVariableOp", ["handle", "value"]),
    )
    assert measured / 2 < seconds(step, 2) / MILLISECOND < measured * 2


@pytest.mark.parametrize(
    ("op", "elements", "microseconds"),
    [
        ("Mul", 16 * 512, 1.3),
        ("Mul", 64 * 512, 3.4),
        ("Sigmoid", 16 * 512, 4.7),
        ("Tanh", 32 * 768, 6.6),
        ("Split", 64 * 512, 4.5),
        ("TensorListPopBack", 2**20, 0.4),
        ("ReadVariableOp", 2**20, 0.4),
    ],
)
def test_what_quick_kernels_take_decides_which_are_cheap(op, elements, microseconds):
    step = graph(node("given", "Placeholder", (), elements), node("made", op, ["given"], elements))
    if op == "Mul":
        step.nodes[1].inputs.append(step.nodes[1].inputs[0])
    assert microseconds / 2 < cycles(step, 1) / CYCLES_PER_SECOND * 1e6 < microseconds * 2


def test_what_is_of_half_precision_is_converted_there_and_back():
    step = graph(node("given", "Placeholder", (), 8192), node("made", "Sigmoid", ["given"], 8192))
    for one in step.nodes:
        one.outputs = [replace(one.outputs[0], dtype="bfloat16", bytes=8192 * 2)]
    assert 15.2e-6 / 2 < cycles(step, 1) / CYCLES_PER_SECOND < 15.2e-6 * 2


def test_lists_are_summed_element_by_element():
    step = graph(node("one", "Placeholder", (), 1), node("sum", "AddN", ["one", "one"], 1))
    step.nodes[1].outputs = [replace(step.nodes[1].outputs[0], dtype="variant", bytes=0)]
    assert 4e-6 < cycles(step, 1) / CYCLES_PER_SECOND < 19e-6
