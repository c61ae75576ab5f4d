"""Op names, cut down to what people know."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.memory.op_names import short_name


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("StatefulPartitionedCall/adam/Square_2", "adam/Square_2"),
        ("StatefulPartitionedCall_1/adam/Square_2", "adam/Square_2"),
        ("while/body/_1/while/cond/then/_147/while/cond/StatefulPartitionedCall/dense/MatMul", "dense/MatMul"),
        ("StatefulPartitionedCall/StatefulPartitionedCall/dense/MatMul", "dense/MatMul"),
        ("StatefulPartitionedCall", "StatefulPartitionedCall"),
        ("GatherV2", "GatherV2"),
        ("", ""),
    ],
)
def test_names_lose_the_calls_they_were_inlined_from(op, name):
    assert short_name(op) == name
