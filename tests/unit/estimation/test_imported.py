"""A graph imported to be looked at has the shapes of one imported as TensorFlow does."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.imported import imported


def _traced():
    @tf.function
    def step(x):
        y = tf.reshape(x @ tf.ones((6, 4)), (-1, 2))
        total = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + y), (0, y))[1]
        return tf.split(total, 2, axis=1), tf.shape(y)

    return step.get_concrete_function(tf.TensorSpec((5, 6))).graph.as_graph_def()


def test_ops_and_shapes_are_those_of_an_ordinary_import():
    definition = _traced()
    with tf.Graph().as_default() as ordinary:
        tf.import_graph_def(definition, name="")
    looked_at = imported(definition)
    assert len(ordinary.get_operations()) == len(definition.node) > 10
    for operation in ordinary.get_operations():
        same = looked_at.get_operation_by_name(operation.name)
        assert [(made.dtype, made.shape.as_list()) for made in same.outputs] == [
            (made.dtype, made.shape.as_list()) for made in operation.outputs
        ]
    assert [made.shape.as_list() for made in looked_at.get_operation_by_name("split").outputs] == [[10, 1], [10, 1]]


def test_what_is_no_graph_is_refused():
    definition = _traced()
    definition.node[-1].input.append("nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        imported(definition)
