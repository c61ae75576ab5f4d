"""Models made under a strategy, taken for what they are on one replica."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.device import training_device
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.model import Origin, estimate
from tensorboard_plugin_memest.estimation.replicas import (
    ALL_REDUCE,
    Replicas,
    gradients_summed,
    on_one_device,
    outside_strategies,
    replicas_of,
)
from tensorboard_plugin_memest.memory.errors import UsageError


def small(optimizer="adam", **compiled):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, name="first"), keras.layers.Dense(2)])
    model.compile(optimizer=optimizer, loss="mse", jit_compile=False, **compiled)
    return model


@pytest.mark.parametrize(("batch_size", "share"), [(1, 1), (4, 1), (5, 2), (128, 32), (130, 33)])
def test_the_largest_share_of_a_batch_counts(batch_size, share):
    assert Replicas("MirroredStrategy", 4, 4).share(batch_size) == share


def test_strategies_are_told_by_what_they_do():
    assert replicas_of(None) is None
    assert replicas_of(tf.distribute.get_strategy()) is None
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    assert replicas_of(strategy) == Replicas("OneDeviceStrategy", 1, 1)
    with strategy.scope(), outside_strategies():
        assert not tf.distribute.has_strategy()
        assert tf.distribute.get_strategy() is not strategy

    with pytest.raises(UsageError, match="CentralStorageStrategy is none of the strategies"):
        replicas_of(tf.distribute.experimental.CentralStorageStrategy(["CPU:0"]))


def test_one_replica_alone_needs_what_one_device_needs():
    def build():
        return small(metrics=["mae"])

    def spread():
        with tf.distribute.OneDeviceStrategy("CPU:0").scope():
            return build()

    alone = estimate(build, batch_size=8)
    for subject in (spread, spread()):
        found = estimate(subject, batch_size=8)
        assert (found.subject.replicas, found.subject.strategy) == (1, "OneDeviceStrategy")
        assert found.resident_bytes == alone.resident_bytes
        assert found.phases["build"].peak_bytes == alone.phases["build"].peak_bytes
        assert not [item for item in found.phases["step"].live_at_peak if item.role == "all-reduce buffer"]


def test_a_model_is_made_again_as_it_is_and_shares_nothing_with_the_first():
    metric = keras.metrics.MeanSquaredError(name="own")
    model = small(keras.optimizers.SGD(0.3, momentum=0.9), metrics=[metric], steps_per_execution=3)
    with tf.Graph().as_default():
        copy = on_one_device(model)()
        assert [layer.name for layer in copy.layers] == [layer.name for layer in model.layers]
        assert (copy.optimizer.momentum, copy.steps_per_execution, copy.loss) == (0.9, 3, "mse")
        assert copy.optimizer is not model.optimizer
        assert metric not in copy.metrics


def test_functional_models_with_layers_of_layers_are_made_again_too():
    inputs = keras.Input((8, 8, 3))
    block = keras.Sequential([keras.layers.Conv2D(4, 3), keras.layers.BatchNormalization()])
    outputs = keras.layers.Dense(2)(keras.layers.Flatten()(block(inputs)))
    model = keras.Model(inputs, [outputs, keras.layers.ReLU()(outputs)])
    model.compile(keras.optimizers.AdamW(use_ema=True, clipnorm=1.0), [keras.losses.MeanSquaredError(), "mae"])
    with tf.Graph().as_default():
        make = on_one_device(model)
        shapes = [[tuple(weight.shape) for weight in made.weights] for made in (make(), make(), model)]
    assert shapes[0] == shapes[1] == shapes[2]


def test_what_cannot_be_made_again_says_what_to_pass():
    class Odd(keras.Model):
        def __init__(self, size):
            super().__init__()
            self.dense = keras.layers.Dense(size)

        def call(self, x):
            return self.dense(x)

        def get_config(self):
            raise NotImplementedError("no configuration")

    model = Odd(3)
    model.build((None, 4))
    with pytest.raises(UsageError, match=r"no configuration.*Pass a function that makes it outside"):
        on_one_device(model)


@pytest.mark.parametrize("count", [1, 3])
def test_gradients_are_summed_in_one_buffer_for_each_type(count):
    model = small()
    weights = model.trainable_variables
    with tf.Graph().as_default() as graph:
        gradients = [tf.ones(weight.shape) for weight in weights[:-1]]
        half = tf.ones(weights[-1].shape, "float16")
        sparse = tf.IndexedSlices(tf.ones((2, 5)), tf.constant([0, 3]), tf.constant([6, 5]))
        given = [*((gradient, None) for gradient in gradients), (half, None), (None, None), (sparse, None)]
        with gradients_summed([model.optimizer], count):
            summed = model.optimizer._all_reduce_sum_gradients(given) if count > 1 else given
        found = [op for op in graph.get_operations() if op.type == ALL_REDUCE]
        assert "_all_reduce_sum_gradients" not in vars(model.optimizer)
        if count == 1:
            assert found == []
            return
        assert [op.outputs[0].shape.num_elements() for op in found] == [6 * 5 + 5 + 5 * 2, 2]
        shapes = [None if one is None else tuple(one.values.shape if one is summed[-1][0] else one.shape)
                  for one, _ in summed]  # fmt: skip
        assert shapes == [(6, 5), (5,), (5, 2), (2,), None, (6, 5)]
        assert summed[3][0].dtype == tf.float16


def test_gradients_of_half_precision_are_known_for_what_they_are_behind_the_sum():
    def build():
        keras.config.set_dtype_policy("mixed_float16")
        try:
            return small()
        finally:
            keras.config.set_dtype_policy("float32")

    given = Given(batch_size=16, device="CPU", replicas=Replicas("MirroredStrategy", 2, 2))
    made = Origin(build, given, training_device("CPU"), 0).estimate()
    found = {(whose.role, whose.layer) for whose in made.phases["step"].owners.values()}
    assert [role for role, _ in found if role == "all-reduce buffer"]
    assert {layer for role, layer in found if role == "gradient"} >= {"first"}
