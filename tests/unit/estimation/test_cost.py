"""About how long kernels run, held against what was measured on two cores; within a factor of two is close enough."""

from __future__ import annotations

import pytest
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from tensorboard_plugin_memest.estimation.cost import seconds
from tests.unit.estimation.graphs import graph, node

ROWS, INNER, COLUMNS = 32, 768, 3072
MILLISECOND = 1e-3


@pytest.mark.parametrize(
    ("left", "right", "made", "transposed", "measured"),
    [
        (ROWS * INNER, INNER * COLUMNS, ROWS * COLUMNS, False, 2.1 * MILLISECOND),
        (ROWS * COLUMNS, INNER * COLUMNS, ROWS * INNER, True, 4.7 * MILLISECOND),
        (ROWS * INNER, ROWS * COLUMNS, INNER * COLUMNS, False, 1.1 * MILLISECOND),
    ],
    ids=["forward", "gradient of the input", "gradient of the weight"],
)
def test_what_a_product_of_matrices_takes_is_to_pack_the_second_one(left, right, made, transposed, measured):
    step = graph(
        node("left", "Placeholder", (), left),
        node("right", "Placeholder", (), right),
        node("product", "MatMul", ["left", "right"], made, transpose_b=AttrValue(b=transposed)),
    )
    assert measured / 2 < seconds(step, 2) < measured * 2


@pytest.mark.parametrize(
    ("op", "elements", "measured"),
    [("AddN", INNER * COLUMNS, 0.3 * MILLISECOND), ("Mul", 2**22, 1.4 * MILLISECOND), ("Mul", 2**25, 26 * MILLISECOND)],
)
def test_what_elementwise_kernels_take_is_to_move_bytes(op, elements, measured):
    step = graph(
        node("left", "Placeholder", (), elements),
        node("right", "Placeholder", (), elements),
        node("made", op, ["left", "right"], elements),
    )
    assert measured / 2 < seconds(step, 2) < measured * 2
