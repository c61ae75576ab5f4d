"""What callbacks that save and log, and other ways to save, take of the host's memory."""

from __future__ import annotations

import math

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers
KERNEL, BIAS = 100 * 50 * 4, 50 * 4
OUT = 50 * 20 * 4
# Iterations are an int64, the learning rate a float32.
COUNTS = 8 + 4
WEIGHTS = KERNEL + BIAS + OUT
SLOTS = 2 * WEIGHTS + COUNTS


def build() -> keras.Model:
    parts = [L.Dense(50, name="wide"), L.Dense(20, use_bias=False, name="out")]
    model = keras.Sequential([keras.Input((100,)), *parts], name="model")
    model.compile("adam", "mse", jit_compile=False)
    return model


# Slots are saved after all weights, weight by weight: the last large one is the wide kernel's second.
WHOLE_FILE = WEIGHTS + COUNTS + 2 * KERNEL + 2 * KERNEL
OPTIMIZERS_LIST = SLOTS + KERNEL
# What the first file brings in.
FIRST = 6_000_000
CHECKPOINT = tf.train.Checkpoint()


@pytest.mark.parametrize(
    ("how", "device", "expected", "words"),
    [
        ({"callbacks": [keras.callbacks.ModelCheckpoint("a.keras")]}, "CPU", FIRST + WHOLE_FILE, "Saving 'a.keras'"),
        (
            {"callbacks": [keras.callbacks.ModelCheckpoint("a.weights.h5", save_weights_only=True)]},
            "CPU",
            FIRST + 2 * KERNEL,
            "largest variable",
        ),
        ({"callbacks": [keras.callbacks.BackupAndRestore("backup")]}, "CPU", FIRST + 2 * KERNEL, "backup.weights.h5"),
        (
            {"callbacks": [keras.callbacks.ModelCheckpoint("a.h5")]},
            "CPU",
            FIRST + OPTIMIZERS_LIST,
            "all arrays of a layer",
        ),
        (
            {"callbacks": [keras.callbacks.TensorBoard("logs", histogram_freq=1)]},
            "CPU",
            240 * 100 * 50,
            "for wide/kernel, [5000, 30]",
        ),
        ({"saves": "a.keras"}, "CPU", FIRST + WHOLE_FILE, "Saving 'a.keras'"),
        ({"saves": CHECKPOINT}, "CPU", 8 * 2**20 + 2_500_000, "write buffer"),
        ({"saves": [CHECKPOINT]}, "GPU", WEIGHTS + SLOTS + 8 * 2**20 + 2_500_000, "copies all variables from the GPU"),
        # The costliest decides: they do not happen at once.
        ({"saves": ["a.weights.h5", "a.keras"]}, "CPU", FIRST + WHOLE_FILE, "Saving 'a.weights.h5'"),
    ],
)
def test_each_way_to_save_is_counted_on_the_host_and_the_variables_on_the_device(how, device, expected, words):
    made = estimate(build, batch_size=4, device=device, jit_compile=False, **how)
    phase = made.phases["checkpoint"]
    assert phase.host_peak_bytes == expected
    # Beside the variables there is what their chunks have too much, and on a CPU what is kept for the functions.
    assert phase.peak_bytes == sum(item.bytes for item in phase.live_at_peak)
    step = made.phases["step"]
    assert step.allocations is not None
    left = step.allocations.items_at(len(step.timeline) - 1)
    assert phase.requested_peak_bytes == sum(item.requested_bytes for item in left)
    assert made.resident_bytes <= phase.peak_bytes < 1.5 * made.resident_bytes
    assert words in "\n".join(made.assumptions)
    assert Estimate.from_json(made.to_json()) == made


def recurrent() -> keras.Model:
    model = keras.Sequential([keras.Input((6, 30)), L.LSTM(20), L.Dense(4)])
    model.compile("adam", "mse", jit_compile=False)
    return model


@pytest.mark.parametrize("how", [{"jit_compile": False}, {"run_eagerly": True}])
@pytest.mark.parametrize(("make", "functions"), [(build, 0), (recurrent, 2)])
def test_an_export_takes_what_it_traces(make, functions, how):
    model = make()
    call = tf.function(lambda x: model(x, training=False), input_signature=[tf.TensorSpec(model.input_shape)])
    definition = call.get_concrete_function().graph.as_graph_def()
    ops = len(definition.node) + sum(len(one.node_def) for one in definition.library.function)
    assert len(definition.library.function) == functions
    traced = 29_000 * ops + 660_000 * functions + 266_000 * len(model.weights)
    for device, copied in (("CPU", 0), ("GPU", sum(4 * math.prod(one.shape) for one in model.weights))):
        made = estimate(make, batch_size=4, device=device, saves="exported", **how)
        assert made.phases["checkpoint"].host_peak_bytes == copied + 8 * 2**20 + 2_500_000 + traced
        assert "Exporting to 'exported' takes" in "".join(made.assumptions)


def test_of_a_large_weight_one_copy_is_there_while_the_file_grows_and_two_of_an_optimizers_variable():
    def large(optimizer):
        def build() -> keras.Model:
            model = keras.Sequential([keras.Input((4000,)), L.Dense(3000, use_bias=False), L.Dense(1, use_bias=False)])
            model.compile(optimizer, "mse", jit_compile=False)
            return model

        return build

    kernel, out = 4000 * 3000 * 4, 3000 * 4

    def saved(optimizer) -> int:
        return estimate(large(optimizer), batch_size=2, saves="a.keras").phases["checkpoint"].host_peak_bytes

    assert saved("sgd") == FIRST + 2 * kernel
    momentum = keras.optimizers.SGD(momentum=0.9)
    assert saved(momentum) == FIRST + kernel + out + COUNTS + 3 * kernel


def test_of_arrays_that_are_freed_malloc_keeps_what_is_smaller_than_one_before():
    large, middle, small = 40_000_000, 20_000_000, 12_000_000

    def taken(*sizes: int) -> int:
        def build() -> keras.Model:
            parts = [L.Dense(1, use_bias=False) for _ in sizes]
            inputs = [keras.Input((size // 4,)) for size in sizes]
            return keras.Model(inputs, L.Add()([part(one) for part, one in zip(parts, inputs, strict=True)]))

        made = estimate(build, batch_size=None, predict_batch_size=1, saves="a.weights.h5")
        return made.phases["checkpoint"].host_peak_bytes - FIRST

    assert taken(large) == 2 * large
    # The first of its size has pages of its own, and the next ones are put where it left heap.
    assert taken(middle, large) == 2 * large
    assert taken(middle, small, large) == 2 * small + 2 * large
    # As much as twice the largest is given back.
    assert taken(middle, middle, large) == 2 * large


@pytest.mark.parametrize("how", [{"jit_compile": False}, {"run_eagerly": True}])
def test_a_kernel_with_lora_is_merged_on_the_device_and_copied_once(how):
    units, rank = 300, 4

    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((units,)), L.Dense(units, use_bias=False, name="wide")])
        model.layers[0].enable_lora(rank)
        model.compile("sgd", "mse", jit_compile=False)
        return model

    kernel = units * units * 4
    ways = ("a.weights.h5", "a.h5", CHECKPOINT)
    asked, legacy, other = (estimate(build, batch_size=2, saves=one, **how).phases["checkpoint"] for one in ways)
    assert asked.host_peak_bytes == FIRST + kernel
    # The product, and that times the scale; then that, and the sum.
    computed = [item for item in asked.live_at_peak if "computed to be saved" in item.role]
    assert [(item.layer, item.requested_bytes) for item in computed] == [("wide", kernel)] * 2
    assert asked.requested_peak_bytes == other.requested_peak_bytes + 2 * kernel
    # Legacy files have the variables as they are.
    assert legacy.requested_peak_bytes == other.requested_peak_bytes
    assert legacy.host_peak_bytes == FIRST + 2 * kernel + 2 * rank * units * 4


def test_a_layer_whose_code_needs_values_counts_as_one_that_stores_its_variables():
    class Own(L.Dense):
        def save_own_variables(self, store):
            store["kernel"] = self.kernel.numpy() + 1

    def build(kind) -> keras.Model:
        return keras.Sequential([keras.Input((100,)), kind(50, use_bias=False)])

    found, expected = (
        estimate(build(kind), batch_size=None, predict_batch_size=1, saves="a.weights.h5").phases["checkpoint"]
        for kind in (Own, L.Dense)
    )
    assert found.host_peak_bytes == expected.host_peak_bytes == FIRST + 2 * KERNEL
    assert found.peak_bytes == expected.peak_bytes


@pytest.mark.parametrize("how", [{"jit_compile": False}, {"run_eagerly": True}])
def test_the_batch_that_was_predicted_for_last_is_gone(how):
    with_batch, without = (
        estimate(build, batch_size=4, saves="a.keras", **how, **more).phases["checkpoint"]
        for more in ({"predict_batch_size": 300, "predict_examples": 900}, {})
    )
    assert Category.INPUTS not in with_batch.categories
    assert abs(with_batch.requested_peak_bytes - without.requested_peak_bytes) < 2**12


def test_callbacks_that_save_nothing_add_nothing_and_others_are_refused():
    quiet = [keras.callbacks.EarlyStopping(), keras.callbacks.TensorBoard("logs")]
    made = estimate(build, batch_size=4, callbacks=quiet)
    assert "checkpoint" not in made.phases
    assert all(phase.host_peak_bytes == 0 for phase in made.phases.values())
    with pytest.raises(UsageError, match=r"callbacks= takes the Keras callbacks .* not .a\.keras"):
        estimate(build, batch_size=4, callbacks="a.keras")
    with pytest.raises(UsageError, match=r"saves= takes file names .*'a\.weights\.h5'.* not 3"):
        estimate(build, batch_size=4, saves=["a.keras", 3])


def test_another_batch_is_saved_alike():
    made = estimate(build, batch_size=4, saves="a.keras")
    assert made.at_batch_size(8).phases["checkpoint"].host_peak_bytes == FIRST + WHOLE_FILE


@pytest.mark.parametrize("how", [{"jit_compile": False}, {"run_eagerly": True}])
def test_a_table_of_which_rows_were_changed_is_copied_while_keras_saves_it_and_not_while_tensorflow_does(how):
    rows, width = 20_000, 50

    def table(optimizer="sgd") -> keras.Model:
        parts = [L.Embedding(rows, width, name="table"), L.Flatten(), L.Dense(1, use_bias=False)]
        model = keras.Sequential([keras.Input((4,), dtype="int32"), *parts])
        model.compile(optimizer, "mse")
        return model

    by_keras, by_tensorflow, dense = (
        estimate(build, batch_size=2, saves=saved, **how).phases["checkpoint"]
        for build, saved in ((table, "a.keras"), (table, CHECKPOINT), (lambda: table("adam"), "a.keras"))
    )
    (copy,) = [item for item in by_keras.live_at_peak if item.role == "copy that is saved"]
    assert (copy.layer, copy.requested_bytes) == ("table", rows * width * 4)
    assert by_keras.peak_bytes == by_tensorflow.peak_bytes + copy.bytes
    # Keras' Adam makes all of such a gradient.
    assert all(item.role != "copy that is saved" for item in dense.live_at_peak)
