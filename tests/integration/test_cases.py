"""Situations that people reported: what they built, what they saw, and what memest says of it, with nothing allocated.

Figures are the reports' own, or follow from the shapes. Models are functions, so that those of 16 GB of weights can be
estimated on any machine.
"""

from __future__ import annotations

import itertools
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import memest
from tensorboard_plugin_memest.advise.workshop import Workshop
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.dominant import dominant
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate, Layer

L = keras.layers
GIB = 2**30


def compiled(parts: list, optimizer: str, loss: Any) -> keras.Model:
    model = keras.Sequential(parts)
    model.compile(optimizer, loss, jit_compile=False)
    return model


def largest_layer(estimate: Estimate) -> Layer:
    """The layer of most parameters; names count up over all models of a process."""
    return max(estimate.layers, key=lambda one: one.parameters)


def held(estimate: Estimate, category: Category) -> int:
    return estimate.peak_phase.categories.get(category, 0)


def giant_dense(optimizer: str):
    parts = [keras.Input((1491, 257, 1)), *(L.Conv2D(16, 3, activation="relu") for _ in range(2)), L.Flatten()]
    dense = [L.Dense(128, activation="relu"), L.Dense(1, activation="sigmoid")]
    return lambda: compiled([*parts, *dense], optimizer, "binary_crossentropy")


def test_the_giant_dense_with_adam():
    estimate = memest.estimate(giant_dense("adam"), batch_size=1)
    assert estimate.subject.parameters == 770482865
    assert largest_layer(estimate).parameters == 770480128 + 128
    assert held(estimate, Category.WEIGHTS) / GIB == pytest.approx(2.87, abs=0.005)
    assert estimate.phases["build"].peak_bytes / GIB == pytest.approx(8.61, abs=0.01)
    # With one inter-op thread, as tests have it, the update's second temporary is gone before the next comes.
    one_thread = tf.config.threading.get_inter_op_parallelism_threads() == 1
    high = estimate.peak_phase.peak_range[1]
    assert high / GIB == pytest.approx(14.40 if one_thread else 17.22, abs=0.03)
    assert estimate.fits("9.29GiB").outcome == "does not fit"
    sentence = dominant(estimate.items)[0].sentence
    for part in ("/kernel [6019376, 128]", "weight", "gradient", "Adam m", "Adam v", "%"):
        assert part in sentence


def test_the_giant_denses_advice():
    estimate = memest.estimate(giant_dense("adam"), batch_size=1, device="CPU")
    advice = estimate.advice("9.29GiB")
    levers = {lever.name: lever for lever in advice.levers}
    assert not advice.fits
    assert advice.max_batch_size == 0
    assert levers["global_pooling"].peak_bytes / GIB < 0.1
    assert levers["pooling"].peak_bytes / GIB == pytest.approx(1.0, abs=0.1)
    # The author of the report could have had 5.81 to 8.66 GiB with it.
    assert 5.8 < levers["sgd"].peak_bytes / GIB < 8.7
    assert levers["sgd"].saving_by_category[Category.OPTIMIZER_SLOTS] / GIB == pytest.approx(5.74, abs=0.01)
    for units, copies in ((64, 1 / 2), (16, 1 / 8)):
        smaller = levers[f"smaller_dense_{units}"]
        assert smaller.peak_bytes == pytest.approx(estimate.peak_bytes * copies, rel=0.1)
    assert all(lever.code for lever in advice.levers)
    useless = {lever.name: lever for lever in advice.useless}
    # With one inter-op thread, as tests have it, graph mode needs no more in a step than XLA in its first.
    xla = {**levers, **useless}["xla"]
    assert xla.peak_bytes / GIB == pytest.approx(14.44, abs=0.01)
    assert not xla.fits
    assert xla.reason is None or "later ones at 11.57 GiB" in xla.reason
    for precision in ("mixed_float16", "mixed_bfloat16"):
        assert "weights, gradients and slots stay float32" in useless[precision].reason
        assert useless[precision].peak_bytes > 0.95 * estimate.peak_bytes
    assert "own copy of weights" in useless["mirrored_strategy"].reason
    # One change is enough, and the one that leaves the model as it is goes first.
    assert advice.combination.names == ("sgd",)
    text = str(advice)
    for words in ("GlobalAveragePooling2D()", "keras.optimizers.SGD(", "XLA", "stay float32", "Optimizer SGD"):
        assert words in text


def test_the_giant_dense_with_sgd_is_a_range():
    low, high = memest.estimate(giant_dense("sgd"), batch_size=1).peak_phase.peak_range
    assert low / GIB == pytest.approx(5.81, rel=0.02)
    assert high / GIB == pytest.approx(8.66, rel=0.02)


def image_classifier() -> keras.Model:
    inputs = keras.Input((180, 180, 3))
    x = L.Conv2D(128, 3, strides=2, padding="same")(L.Rescaling(1 / 255)(inputs))
    x = before = L.Activation("relu")(L.BatchNormalization()(x))
    for filters in (256, 512, 728):
        for _ in range(2):
            x = L.SeparableConv2D(filters, 3, padding="same")(L.Activation("relu")(x))
            x = L.BatchNormalization()(x)
        x = L.MaxPooling2D(3, strides=2, padding="same")(x)
        x = before = L.add([x, L.Conv2D(filters, 1, strides=2, padding="same")(before)])
    x = L.BatchNormalization()(L.SeparableConv2D(1024, 3, padding="same")(x))
    x = L.Dropout(0.25)(L.GlobalAveragePooling2D()(L.Activation("relu")(x)))
    model = keras.Model(inputs, L.Dense(1)(x))
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True), jit_compile=False)
    return model


def test_the_image_classifier_is_all_activations_and_fits_at_a_quarter_of_the_batch():
    estimate = memest.estimate(image_classifier, batch_size=128)
    assert estimate.subject.parameters == 2731065
    largest = [one for one in estimate.items if one.shape == (128, 90, 90, 256)]
    assert len(largest) >= 3
    assert {one.requested_bytes for one in largest} == {1061683200}
    assert held(estimate, Category.WEIGHTS) + held(estimate, Category.OPTIMIZER_SLOTS) < 0.05 * 10**9
    assert held(estimate, Category.ACTIVATIONS) > 0.9 * estimate.peak_bytes
    assert not estimate.fits("4GB")
    # The report: it runs at 32.
    assert 32 <= estimate.max_batch_size("4GB") < 64


def wide_lstm(pooled: bool):
    def build() -> keras.Model:
        flat = L.GlobalAveragePooling2D() if pooled else L.Flatten()
        parts = [keras.Input((24, 8, 8, 2048)), L.TimeDistributed(flat), L.Dropout(0.5)]
        parts += [L.LSTM(512, return_sequences=True), L.LSTM(512), L.Dense(512), L.Dense(256), L.Dense(10)]
        return compiled(parts, "adam", "mse")

    return build


def test_the_wide_lstm_is_told_to_pool():
    estimate = memest.estimate(wide_lstm(False), batch_size=4)
    workshop = Workshop(estimate.origin, estimate)
    proposal = next(one for one in workshop.proposals() if one.name == "global_pooling")
    assert proposal.code.startswith("layers.TimeDistributed(layers.GlobalAveragePooling2D())")
    assert workshop.tried(proposal.change).peak_bytes < estimate.peak_bytes / 16


def test_the_wide_lstms_kernel_is_a_gibibyte_a_copy_and_pooling_cuts_it_64_fold():
    estimate = memest.estimate(wide_lstm(False), batch_size=4)
    copies = [one for one in estimate.items if one.shape == (131072, 2048)]
    assert {one.requested_bytes for one in copies} == {1073741824}
    assert {"weight", "Adam m", "Adam v"} <= {one.role for one in copies if one.layer.endswith("lstm_cell")}
    pooled = memest.estimate(wide_lstm(True), batch_size=4)
    (kernel,) = [one for one in pooled.items if one.shape == (2048, 2048) and one.role == "weight"]
    assert kernel.requested_bytes == 1073741824 // 64
    assert pooled.peak_bytes < estimate.peak_bytes / 16


def test_sgd_keeps_an_embeddings_gradient_sparse():
    parts = [keras.Input((20,), dtype="int32"), L.Embedding(793471, 512)]
    estimate = memest.estimate(lambda: compiled(parts, "sgd", "mse"), batch_size=128)
    first, step = (estimate.phases[name].live_at_peak for name in ("first_step", "step"))
    assert [one.category for one in first if one.requested_bytes == 1625028608] == [Category.WEIGHTS]
    # Grappler may have multiplied it by the learning rate where it is made.
    gradients = [
        one
        for one, _, _ in estimate.phases["step"].allocations
        if one.category is Category.GRADIENTS or one.role == "update temporary"
    ]
    assert max(one.requested_bytes for one in gradients) == 5242880
    # Once some rows were updated in place, reading the table copies it: a table of 48.8 MiB trains in 51.5 MiB in the
    # first step and in 114.8 in every later one.
    table = [one.category for one in step if one.requested_bytes == 1625028608]
    assert sorted(table) == [Category.TEMPORARIES, Category.WEIGHTS]


def test_adam_makes_an_embeddings_gradient_dense():
    parts = [keras.Input((20,), dtype="int32"), L.Embedding(793471, 512)]
    estimate = memest.estimate(lambda: compiled(parts, "adam", "mse"), batch_size=128)
    table = sum(one.requested_bytes == 1625028608 for one in estimate.items)
    assert table >= 5  # weight, both slots, the gradient made dense, and the update


def test_two_convolutions_at_330_pixels_need_as_much_for_activations_as_for_the_dense_layer():
    parts = [keras.Input((330, 330, 3)), *(L.Conv2D(16, 3, activation="relu") for _ in range(2)), L.MaxPooling2D()]
    parts += [L.Dropout(0.25), L.Flatten(), L.Dense(128, activation="relu"), L.Dropout(0.5)]
    parts += [L.Dense(17, activation="softmax")]
    estimate = memest.estimate(lambda: compiled(parts, "adadelta", "categorical_crossentropy"), batch_size=64)
    assert estimate.subject.parameters == 54418401
    assert largest_layer(estimate).parameters == 54413312 + 128
    kernel = 4 * 54413312
    copies = [one.role for one in estimate.items if one.requested_bytes == kernel]
    assert {"weight", "Adadelta accumulated grad", "Adadelta accumulated delta var"} <= set(copies)
    assert held(estimate, Category.ACTIVATIONS) > 4 * kernel
    # They are the batch's, the Dense layer's copies are not.
    smaller = estimate.at_batch_size(32)
    assert held(smaller, Category.ACTIVATIONS) < 0.6 * held(estimate, Category.ACTIVATIONS)
    assert {"weight", "Adadelta accumulated grad"} <= {
        one.role for one in smaller.items if one.requested_bytes == kernel
    }


def test_four_billion_parameters_are_counted_exactly():
    parts: list = [keras.Input((157, 462, 14))]
    for filters in (16, 32, 64):
        parts += [L.Conv2D(filters, 5, activation="tanh"), L.MaxPooling2D(2)]
    estimate = memest.estimate(lambda: compiled([*parts, L.Flatten(), L.Dense(72534)], "adamax", "mse"), batch_size=1)
    assert largest_layer(estimate).parameters == 4010912598
    assert estimate.subject.parameters == 4010982310
    weights = [
        one.requested_bytes for one in estimate.items if one.category is Category.WEIGHTS and one.role == "weight"
    ]
    assert sum(weights) == 16043929240
    assert estimate.resident_bytes >= 3 * 16043929240


class Tokens(L.Layer):
    """Embeddings of tokens and positions; the same table gives the logits."""

    def __init__(self, vocabulary: int, positions: int, width: int) -> None:
        super().__init__()
        self.sizes = (vocabulary, positions, width)

    def build(self, _):
        vocabulary, positions, width = self.sizes
        self.table = self.add_weight(shape=(vocabulary, width), name="table")
        self.positions = self.add_weight(shape=(positions, width), name="positions")

    def call(self, tokens):
        return tf.gather(self.table, tokens) + self.positions[: tokens.shape[1]]


class Logits(L.Layer):
    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self.tokens = tokens

    def call(self, x):
        return tf.matmul(x, self.tokens.table, transpose_b=True)


def decoder() -> keras.Model:
    inputs = keras.Input((128,), dtype="int32")
    tokens = Tokens(50272, 2050, 2048)
    x = tokens(inputs)
    for _ in range(24):
        h = L.LayerNormalization()(x)
        x = x + L.MultiHeadAttention(32, 64)(h, h, use_causal_mask=True)
        x = x + L.Dense(2048)(L.Dense(8192, activation="relu")(L.LayerNormalization()(x)))
    model = keras.Model(inputs, Logits(tokens)(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    return model


def test_a_language_model_of_a_billion_parameters_needs_what_its_summary_leaves_out():
    estimate = memest.estimate(decoder, batch_size=1)
    assert estimate.subject.parameters == 1315753984
    roles = dict.fromkeys(("weight", "Adam m", "Adam v"), 0)
    for one in estimate.items:
        if one.role in roles:
            roles[one.role] += one.requested_bytes
    assert roles["weight"] == 5263015936
    assert roles["Adam m"] + roles["Adam v"] == 10526031872
    # The summary told 14.70 "GB": weights and slots. Gradients come on top.
    assert estimate.peak_bytes > 5263015936 + 10526031872
    assert "GiB" in str(estimate)


def first_prediction() -> keras.Model:
    parts: list = [keras.Input((7680,))]
    for units in (4096, 4096):
        parts += [L.Dense(units), L.BatchNormalization(), L.ReLU()]
    return keras.Sequential([*parts, L.Dense(51), L.BatchNormalization(), L.Softmax()])


def test_the_first_prediction_needs_the_weights_and_hardly_more():
    estimate = memest.estimate(first_prediction, batch_size=1, predict_batch_size=1)
    assert estimate.subject.parameters == 48484607
    weights = sum(one.requested_bytes for one in estimate.items if one.category is Category.WEIGHTS)
    assert weights == 193938428
    assert held(estimate, Category.GRADIENTS) == held(estimate, Category.OPTIMIZER_SLOTS) == 0
    assert set(estimate.phases) == {"build", "predict"}
    model = first_prediction()
    before = tf.config.experimental.get_memory_info("CPU:0")["current"] - 193938428
    tf.config.experimental.reset_memory_stats("CPU:0")
    model.predict(tf.zeros((1, 7680)), verbose=0)
    measured = tf.config.experimental.get_memory_info("CPU:0")["peak"] - before
    assert estimate.peak_bytes == pytest.approx(measured, rel=0.01)


def test_histograms_take_240_bytes_of_the_host_for_each_element_of_the_largest_kernel():
    board = keras.callbacks.TensorBoard("logs", histogram_freq=1)
    parts = [keras.Input((25088,)), L.Dense(4096), L.Dense(10)]
    estimate = memest.estimate(lambda: compiled(parts, "sgd", "mse"), batch_size=1, callbacks=[board])
    assert estimate.phases["checkpoint"].host_peak_bytes == 24662507520
    said = [note for note in estimate.assumptions if "histogram_freq" in note]
    assert "[102760448, 30] in float64" in said[0]
    assert "240 bytes for each element" in said[0]
    workshop = Workshop(estimate.origin, estimate)
    proposal = next(one for one in workshop.proposals() if one.name == "histogram_freq")
    assert "histogram_freq=0" in proposal.code
    assert "checkpoint" not in workshop.tried(proposal.change).phases


def test_fifty_million_shuffled_scalars():
    numbers = np.broadcast_to(np.int64(0), (1000,))
    small = memest.estimate_dataset(tf.data.Dataset.from_tensor_slices(numbers).shuffle(1000))
    # Exactly proportional, so that 400 MB need not be made here.
    assert 50_000_000 * small.peak_bytes / 1000 == pytest.approx(10 * 10**9, rel=0.15)
    best = small.advice()[0]
    assert best.peak_bytes < small.peak_bytes / 5
    names = [lever.name for lever in small.advice()]
    assert "shuffle numbers instead of elements" in names


def test_fit_on_arrays_holds_a_second_copy():
    x = np.broadcast_to(np.uint16(0), (5000, 512, 512, 1))
    y = np.broadcast_to(np.float32(0), (5000, 512, 512, 1))
    estimate = memest.estimate_dataset((x, y))
    assert estimate.peak_bytes / 2**20 == pytest.approx(7505, rel=0.1)
    assert "second copy" in estimate.stages[0].reason
    assert estimate.advice()[0].peak_bytes < estimate.peak_bytes / 10


def test_the_giant_denses_data_is_in_memory_once():
    clips = tf.data.Dataset.range(810).map(lambda one: tf.zeros((1491, 257, 1)) + tf.cast(one, tf.float32))
    estimate = memest.estimate_dataset(clips.cache().shuffle(1000).batch(1))
    # Not the cache's 1.16 and the buffer's 1.43 beside it: they hold the same tensors.
    assert estimate.peak_bytes / GIB == pytest.approx(1.16, abs=0.02)
    shuffle = next(stage for stage in estimate.stages if stage.name == "shuffle")
    assert shuffle.elements == 810
    assert shuffle.bytes < 2**20
    assert "810 elements, not the 1,000 asked for" in shuffle.reason


def volumes() -> keras.Model:
    """A U-Net for volumes of brains, 4 classes; 16 to 256 filters, as somebody asked about in a forum."""

    def block(x, filters: int):
        for _ in range(2):
            x = L.Activation("relu")(L.BatchNormalization()(L.Conv3D(filters, 3, padding="same")(x)))
        return x

    inputs = keras.Input((240, 240, 160, 1))
    x, kept = inputs, []
    for filters in (16, 32, 64, 128):
        kept.append(block(x, filters))
        x = L.MaxPooling3D(2, padding="same")(kept[-1])
    x = block(x, 256)
    for filters, before in zip((128, 64, 32, 16), reversed(kept), strict=True):
        x = L.Conv3DTranspose(filters, 2, strides=2, padding="same")(x)
        x = block(L.Concatenate()([x, before]), filters)
    model = keras.Model(inputs, L.Conv3D(4, 1, padding="same", activation="softmax")(x))
    model.compile("adam", "categorical_crossentropy", jit_compile=False)
    return model


def test_a_network_for_volumes_is_told_to_cut_them_into_patches():
    estimate = memest.estimate(volumes, batch_size=1, device="GPU")
    # The report counted the volumes and their masks of 4 classes. It is what layers make of them.
    made = 240 * 240 * 160 * 16 * 4
    large = [one for one in estimate.items if one.requested_bytes in (made, 2 * made)]
    assert len(large) >= 8
    assert held(estimate, Category.WEIGHTS) + held(estimate, Category.OPTIMIZER_SLOTS) < 0.01 * estimate.peak_bytes
    workshop = Workshop(estimate.origin, estimate)
    patches = next(one for one in workshop.proposals() if one.kind != "batch")
    assert "112 x 112 x 64 x 1 instead of 240 x 240 x 160 x 1" in patches.title
    # Sides are cut so that four times halved they still meet, and the volume goes down to an eleventh.
    assert workshop.tried(patches.change).peak_bytes < estimate.peak_bytes / 8


def test_scores_of_all_pairs_of_a_long_text_are_what_does_not_fit():
    """20,000 words and 8 heads in a batch of 2: an error about [16, 20000, 20000]."""

    def build() -> keras.Model:
        words = keras.Input((None,), dtype="int32")
        x = L.Embedding(10000, 1024)(words)
        x = L.Dense(512, activation="relu")(L.MultiHeadAttention(8, 128)(x, x))
        model = keras.Model(words, L.Dense(4, activation="softmax")(x))
        model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
        return model

    with pytest.raises(UsageError, match="Pass inputs="):
        memest.estimate(build, batch_size=2)
    estimate = memest.estimate(build, batch_size=2, inputs=tf.TensorSpec((None, 20000), "int32"))
    scores = 2 * 8 * 20000 * 20000 * 4
    assert sum(one.requested_bytes == scores for one in estimate.items) >= 3
    assert sum(one.bytes for one in estimate.items if one.requested_bytes == scores) > 0.7 * estimate.peak_bytes
    assert not estimate.fits("24GiB")
    # Half the words are a quarter of the scores.
    halved = memest.estimate(build, batch_size=2, inputs=tf.TensorSpec((None, 10000), "int32"))
    assert halved.peak_bytes < 0.3 * estimate.peak_bytes


def test_training_that_fits_may_not_while_all_of_the_test_data_is_evaluated_at_once():
    """The tutorial for MNIST with all 10,000 test images in one batch: [10000, 32, 28, 28] on a card of 2 GB."""

    def build() -> keras.Model:
        parts: list = [keras.Input((28, 28, 1))]
        for filters in (32, 64):
            parts += [L.Conv2D(filters, 5, padding="same", activation="relu"), L.MaxPooling2D(2, padding="same")]
        parts += [L.Flatten(), L.Dense(1024, activation="relu"), L.Dropout(0.4), L.Dense(10)]
        return compiled(parts, "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    estimate = memest.estimate(build, batch_size=100, validation_batch_size=10000)
    first = 10000 * 32 * 28 * 28 * 4
    assert first in {one.requested_bytes for one in estimate.phases["evaluate"].live_at_peak}
    assert estimate.phases["step"].peak_bytes < 2**30 // 4
    verdict = estimate.fits("1GiB")
    assert not verdict
    assert "while evaluating" in str(verdict)
    tried_first = list(itertools.islice(Workshop(estimate.origin, estimate).proposals(), 2))
    assert "Validation in batches of 100 instead of 10000" in [one.title for one in tried_first]
