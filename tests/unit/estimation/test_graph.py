"""The optimized graph is the one that TensorFlow runs."""

from __future__ import annotations

import keras
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.grappler import tf_optimizer

from tensorboard_plugin_memest.estimation.model import estimate
from tests.unit.estimation.traced import look


def _nodes(definition):
    for node in definition.node:
        # How memory is handed from op to op between devices, which changes none of it.
        node.attr.pop("_grappler_relax_allocator_constraints", None)
    return list(definition.node)


def test_optimizers_that_are_left_out_change_nothing(monkeypatch):
    made = []
    optimize = tf_optimizer.OptimizeGraph

    def both(config, meta, **given):
        all_optimizers = config_pb2.ConfigProto()
        all_optimizers.graph_options.rewrite_options.min_graph_nodes = -1
        made.append((_nodes(optimize(config, meta, **given)), _nodes(optimize(all_optimizers, meta, **given))))
        return optimize(config, meta, **given)

    monkeypatch.setattr(tf_optimizer, "OptimizeGraph", both)
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.ReLU()(keras.layers.BatchNormalization()(keras.layers.Conv2D(4, 3)(inputs)))
    x = keras.layers.LSTM(3)(keras.layers.Reshape((6, -1))(keras.layers.Concatenate()([x, x])))
    model = keras.Model(inputs, keras.layers.Dense(2)(x))
    model.compile(keras.optimizers.Adam(clipnorm=1.0), "mse", jit_compile=False)
    look(model, 4)
    ((ours, complete),) = made
    assert len(ours) > 100
    assert ours == complete


def test_what_depends_on_values_is_counted_at_its_largest():
    class Chosen(keras.layers.Layer):
        def call(self, x):
            flat = tf.reshape(x, [-1, x.shape[-1]])
            some = tf.boolean_mask(flat, flat[:, 0] > 0)
            values, places = tf.unique(tf.stop_gradient(tf.reshape(some, [-1])))
            return x + tf.reduce_sum(some) + tf.reduce_sum(values) + tf.cast(tf.reduce_sum(places), tf.float32)

    model = keras.Sequential([keras.Input((30, 7)), keras.layers.Dense(11), Chosen(name="chosen")])
    model.compile("sgd", "mse", jit_compile=False)
    looked = look(model, 4)
    shapes = {node.op: [output.shape for output in node.outputs] for node in looked.graph.nodes}
    assert shapes["Where"] == [(120, 1)]
    assert shapes["Unique"] == [(120 * 11,), (120 * 11,)]
    gathered = [node.outputs[0].shape for node in looked.graph.nodes if node.op == "GatherV2"]
    assert (120, 11) in gathered, "not the batch of 4"
    assert looked.graph.unknown == []
    notes = "\n".join(estimate(model, batch_size=4).assumptions)
    assert "(chosen) lets through is decided by values in the run; the most that is possible was counted" in notes
