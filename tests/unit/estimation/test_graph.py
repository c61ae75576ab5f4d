"""The optimized graph is the one that TensorFlow runs."""

from __future__ import annotations

import keras
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.grappler import tf_optimizer

from tests.unit.estimation.traced import look


def _nodes(definition):
    for node in definition.node:
        # How memory is handed from op to op between devices, which changes none of it.
        node.attr.pop("_grappler_relax_allocator_constraints", None)
    return list(definition.node)


def test_optimizers_that_are_left_out_change_nothing(monkeypatch):
    made = []
    optimize = tf_optimizer.OptimizeGraph

    def both(config, meta):
        all_optimizers = config_pb2.ConfigProto()
        all_optimizers.graph_options.rewrite_options.min_graph_nodes = -1
        made.append((_nodes(optimize(config, meta)), _nodes(optimize(all_optimizers, meta))))
        return optimize(config, meta)

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
