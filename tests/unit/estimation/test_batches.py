"""Estimates for other batch sizes: the same as new ones, without running the model's Python code again."""

from __future__ import annotations

import pickle

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation import model as estimation
from tensorboard_plugin_memest.estimation.batches import derived_step
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers


def estimate(subject, **options) -> Estimate:
    """An estimate for a GPU: it has one order of execution, which is quicker than the many of a CPU's threads."""
    return estimation.estimate(subject, device="GPU", jit_compile=False, **options)


class Own(keras.Model):
    """Counts how often its step is traced."""

    traced = 0

    def __init__(self) -> None:
        super().__init__(name="own")
        self.hidden = L.Dense(12, activation="relu", name="hidden")
        self.out = L.Dense(3, name="out")

    def call(self, x):
        return self.out(self.hidden(x))

    def train_step(self, data):
        Own.traced += 1
        x, y = data
        with tf.GradientTape() as tape:
            found = self(x, training=True)
            alike = tf.matmul(found, found, transpose_b=True)  # one row and one column for each example
            loss = tf.reduce_sum((found - y) ** 2) / tf.cast(tf.shape(x)[0], tf.float32) + tf.reduce_mean(alike)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def own() -> keras.Model:
    model = Own()
    model.compile("adam", "mse")
    return model


def images() -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            L.Conv2D(4, 3, padding="same"),
            L.BatchNormalization(),
            L.ReLU(),
            L.MaxPooling2D(),
            L.Flatten(),
            L.Dropout(0.2),
            L.Dense(5, activation="softmax"),
        ],
        name="images",
    )
    model.compile(keras.optimizers.SGD(momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def words() -> keras.Model:
    tokens = keras.Input((6,), dtype="int32")
    x = L.Embedding(50, 8)(tokens)
    x = x + L.MultiHeadAttention(2, 4)(x, x)
    x = keras.ops.reshape(L.LayerNormalization()(x), (-1, 3, 16))
    model = keras.Model(tokens, L.Dense(2)(L.Flatten()(x)), name="words")
    model.compile("adagrad", "mse")
    return model


def sequences() -> keras.Model:
    model = keras.Sequential([keras.Input((7, 5)), L.LSTM(6), L.Dense(1)], name="sequences")
    model.compile("rmsprop", "mae")
    return model


def halves() -> keras.Model:
    model = keras.Sequential([keras.Input((16, 16, 2)), L.Conv2D(4, 3), L.GlobalAveragePooling2D(), L.Dense(2)])
    for layer in model.layers:
        layer.dtype_policy = "mixed_float16"
    model.compile(keras.optimizers.Adam(clipnorm=1.0), "mse")
    return model


def specs(build) -> dict[str, object]:
    return {"inputs": tf.TensorSpec((None, 9), "float32")} if build is own else {}


@pytest.mark.parametrize("build", [own, images, words, sequences, halves])
def test_another_batch_size_is_what_a_new_estimate_would_be(build):
    first = estimate(build, batch_size=4, **specs(build))
    for size in (5, 32):
        assert first.at_batch_size(size) == estimate(build, batch_size=size, **specs(build))


@pytest.mark.parametrize("build", [images, words])
def test_a_batch_of_one_is_traced_by_itself(build):
    assert estimate(build, batch_size=4).at_batch_size(1) == estimate(build, batch_size=1)
    assert estimate(build, batch_size=1).at_batch_size(6) == estimate(build, batch_size=6)


def test_the_models_code_does_not_run_again():
    built = []

    def build() -> keras.Model:
        built.append(1)
        return own()

    first = estimate(build, batch_size=4, **specs(own))
    before = (len(built), Own.traced)
    assert first.at_batch_size(64).peak_bytes > first.peak_bytes
    assert first.at_batch_size(64).at_batch_size(4) == first
    assert (len(built), Own.traced) == before


def test_sizes_that_are_begun_together_are_what_they_are_alone():
    origin = estimate(images, batch_size=4).origin
    begun = [origin.begun_at_batch_size(size) for size in (6, 12)]
    later, earlier = [finish() for finish in begun[::-1]]
    assert earlier == estimate(images, batch_size=6)
    assert later == estimate(images, batch_size=12)


def test_zeros_that_are_too_many_for_a_constant_are_not_derived():
    first = estimate(sequences, batch_size=4)
    # 6 units: a constant for 8 examples, an op that fills for 200.
    assert first.at_batch_size(200) == estimate(sequences, batch_size=200)


def test_of_sizes_whose_zeros_are_no_constants_two_tell_all_others():
    traced = 0

    class Watched(keras.layers.Dense):
        def call(self, inputs):
            nonlocal traced
            traced += 1
            return super().call(inputs)

    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((3, 2)), keras.layers.LSTM(6), Watched(1)])
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimation.estimate(build, batch_size=8, device="GPU")
    for size in (400, 500):
        made.at_batch_size(size)
    before = traced
    for size in (600, 700):
        found = made.at_batch_size(size)
        assert traced == before
        assert found.to_json() == estimation.estimate(build, batch_size=size, device="GPU").to_json()
        before = traced


def test_what_depends_on_the_batch_in_no_known_way_is_traced():
    class Steps(L.Layer):
        def call(self, x):
            return x + tf.reduce_sum(tf.zeros(((x.shape[0] or 1) // 3 + 2, 4)))

    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((4,)), L.Dense(8), Steps(), L.Dense(1)])
        model.compile("sgd", "mse")
        return model

    first = estimate(build, batch_size=4)
    assert first.at_batch_size(50) == estimate(build, batch_size=50)


def test_a_model_that_exists_is_left_as_it_was():
    model = images()
    before = [weight.numpy() for weight in model.weights]
    first = estimate(model, batch_size=4)
    assert first.at_batch_size(9) == estimate(model, batch_size=9)
    assert not model.optimizer.built
    assert all((weight.numpy() == value).all() for weight, value in zip(model.weights, before, strict=True))


def test_layers_are_for_the_new_batch():
    at = estimate(images, batch_size=4).at_batch_size(10)
    assert at.subject.batch_size == 10
    assert at.layers[1].output_shape == (10, 12, 12, 4)


def test_largest_batch():
    first = estimate(images, batch_size=4)
    limit = first.at_batch_size(40).peak_bytes
    found = first.max_batch_size(limit)
    assert first.at_batch_size(found).fits(limit)
    assert not first.at_batch_size(found + 1).fits(limit)
    assert first.max_batch_size(f"{limit} B") == found
    assert first.max_batch_size(10_000) == 0


@pytest.mark.parametrize("size", [0, -3, 2.5, True, "8", None])
def test_no_batch_size(size):
    with pytest.raises(UsageError, match="positive integer"):
        estimate(own, batch_size=4, **specs(own)).at_batch_size(size)


def test_a_fixed_batch_size():
    def build() -> keras.Model:
        model = keras.Sequential([keras.Input(batch_shape=(4, 3)), L.Dense(1)], name="fixed")
        model.compile("sgd", "mse")
        return model

    first = estimate(build, batch_size=4)
    assert first.at_batch_size(4) == first
    with pytest.raises(UsageError, match=r"fixed'? is fixed at 4"):
        first.at_batch_size(8)


def test_an_estimate_that_was_read_back_says_what_to_do():
    first = estimate(own, batch_size=4, **specs(own))
    for again in (Estimate.from_json(first.to_json()), pickle.loads(pickle.dumps(first))):
        assert again == first
        with pytest.raises(UsageError, match=r"memest\.estimate"):
            again.at_batch_size(8)
        with pytest.raises(UsageError, match=r"memest\.estimate"):
            again.max_batch_size("1GB")


def test_nothing_is_derived_from_one_trace():
    first = estimate(own, batch_size=4, **specs(own))
    step = first.origin._steps[4]
    assert derived_step({4: step}, 8) is None
    assert derived_step({4: step}, 4) == (4, step)
