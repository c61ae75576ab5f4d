"""Where maxima lay, kept by oneDNN's pooling for its gradient."""

from __future__ import annotations

import pytest
from tensorflow.core.framework import attr_value_pb2

from tensorboard_plugin_memest.estimation.graph import Node, Output, StepGraph
from tensorboard_plugin_memest.estimation.places import keep_places


def _pooling(window: list[int], dtype: str = "float32") -> StepGraph:
    def sizes(values: list[int]) -> attr_value_pb2.AttrValue:
        return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=values))

    images, pooled = Output((2, 8, 8, 3), dtype, 1536), Output((2, 4, 4, 3), dtype, 384)
    attributes = {"ksize": sizes(window), "strides": sizes([1, 2, 2, 1])}
    return StepGraph(
        [
            Node("x", "Placeholder", [], [], [images], {}),
            Node("pool", "MaxPool", [(0, 0)], [], [pooled], attributes),
            Node("grad", "MaxPoolGrad", [(0, 0), (1, 0), (1, 0)], [], [images], attributes),
        ],
        {},
        [],
        [],
    )


@pytest.mark.parametrize(("window", "bytes_each"), [(2, 1), (15, 1), (16, 4)])
def test_a_place_is_one_byte_in_windows_that_are_not_large(window, bytes_each):
    graph = _pooling([1, window, window, 1])
    keep_places(graph)
    assert graph.nodes[1].outputs[1].bytes == 2 * 4 * 4 * 3 * bytes_each
    assert graph.nodes[2].inputs[3] == (1, 1)


@pytest.mark.parametrize("graph", [_pooling([1, 2, 2, 1], "float64"), _pooling([1, 1, 1, 3])], ids=["type", "channels"])
def test_poolings_that_are_tensorflows_own_stay_as_they_are(graph):
    keep_places(graph)
    assert len(graph.nodes[1].outputs) == 1
    assert len(graph.nodes[2].inputs) == 3
