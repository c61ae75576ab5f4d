"""Estimates of whole models: sums, sameness, exactness, and where they can be asked for."""

from __future__ import annotations

import json
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers
PHASES = ["build", "first_step", "step"]


def mlp(optimizer: object = "adam", **options) -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input((40,)),
            L.Dense(60, activation="relu", name="a"),
            L.Dropout(0.5, name="drop"),
            L.Dense(3, name="b"),
        ],
        name="mlp",
    )
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], **options)
    return model


def text_model() -> keras.Model:
    tokens = keras.Input((12,), dtype="int32", name="tokens")
    x = L.Embedding(500, 16, name="table")(tokens)
    x = L.MultiHeadAttention(2, 8, name="attention")(x, x)
    x = L.LayerNormalization(name="norm")(L.GRU(16, name="gru")(x))
    model = keras.Model(
        tokens, {"first": L.Dense(2, name="first")(x), "second": L.Dense(1, name="second")(x)}, name="text"
    )
    model.compile("rmsprop", {"first": "mse", "second": "mae"})
    return model


def image_model() -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            L.Conv2D(8, 3, padding="same"),
            L.BatchNormalization(),
            L.ReLU(),
            L.MaxPooling2D(),
            L.SeparableConv2D(8, 3),
            L.GlobalAveragePooling2D(),
            L.Dense(2),
        ],
        name="image",
    )
    model.compile(keras.optimizers.SGD(momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@pytest.fixture(scope="module", params=[mlp, text_model, image_model])
def made(request) -> Estimate:
    return estimate(request.param(), batch_size=8)


def test_what_is_alive_at_each_peak_adds_up_to_it(made):
    assert list(made.phases) == PHASES
    for phase in made.phases.values():
        assert sum(item.bytes for item in phase.live_at_peak) == phase.peak_bytes > 0
        assert sum(phase.categories.values()) == phase.peak_bytes
        assert (
            sum(item.requested_bytes for item in phase.live_at_peak) <= phase.requested_peak_bytes <= phase.peak_bytes
        )
        assert phase.timeline.peak_bytes == phase.peak_bytes
        low, high = phase.peak_range
        assert low <= phase.peak_bytes <= high


def test_layers_add_up_to_the_peak(made):
    assert sum(layer.bytes_at_peak for layer in made.layers) == made.peak_bytes
    for layer in made.layers:
        assert sum(layer.bytes_per_category.values()) == layer.bytes_at_peak


def test_an_estimate_is_read_back_equal_from_its_json(made):
    assert Estimate.from_json(made.to_json()) == made


def test_items_have_their_shapes_bytes(made):
    for phase in made.phases.values():
        for item in phase.live_at_peak:
            if item.shape is not None and item.dtype is not None:
                assert item.requested_bytes == int(np.prod(item.shape)) * tf.as_dtype(item.dtype).size, item


def test_variables_are_resident_in_every_step(made):
    for name in ("first_step", "step"):
        kept = [
            item
            for item in made.phases[name].live_at_peak
            if item.category in (Category.WEIGHTS, Category.OPTIMIZER_SLOTS)
            or item.role in ("metric state", "random state")
        ]
        held = sum(-(-item.requested_bytes // 256) * 256 for item in kept)
        # In the first step, slots that begin with the same value lie in one piece of memory until they change.
        assert held == made.resident_bytes if name == "step" else held <= made.resident_bytes


@pytest.mark.parametrize("build", [mlp, text_model, image_model])
def test_a_function_and_the_model_it_makes_are_estimated_alike(build):
    of_function, of_model = estimate(build, batch_size=8), estimate(build(), batch_size=8)
    for name in PHASES:
        one, other = of_function.phases[name], of_model.phases[name]
        # A configuration does not tell in which order small states, of random numbers say, were made between weights.
        for value, same in zip(
            (one.peak_bytes, one.requested_peak_bytes, *one.peak_range),
            (other.peak_bytes, other.requested_peak_bytes, *other.peak_range),
            strict=True,
        ):
            assert abs(value - same) <= 1024, name
    assert of_function.resident_bytes == of_model.resident_bytes
    assert [(layer.class_name, layer.output_shape, layer.parameters) for layer in of_function.layers] == [
        (layer.class_name, layer.output_shape, layer.parameters) for layer in of_model.layers
    ]


def test_estimates_repeat():
    model = mlp()
    assert estimate(model, batch_size=8) == estimate(model, batch_size=8)


def test_the_subject_is_told():
    subject = estimate(mlp(), batch_size=8).subject
    assert (subject.model_name, subject.model_class, subject.optimizer) == ("mlp", "Sequential", "Adam")
    assert subject.parameters == subject.trainable_parameters == 40 * 60 + 60 + 60 * 3 + 3
    assert (subject.batch_size, subject.mode) == (8, "graph")
    assert subject.versions["tensorflow"] == tf.__version__
    assert subject.versions["keras"] == keras.__version__
    model = mlp()
    model.layers[0].trainable = False
    assert estimate(model, batch_size=8).subject.trainable_parameters == 60 * 3 + 3


def test_layers_are_those_of_the_model_in_its_order():
    made = estimate(mlp(), batch_size=8)
    infos = [
        (layer.path, layer.class_name, layer.output_shape, layer.parameters)
        for layer in made.layers
        if layer.class_name
    ]
    assert infos[1:] == [
        ("a", "Dense", (8, 60), 2460),
        ("drop", "Dropout", (8, 60), 0),
        ("b", "Dense", (8, 3), 183),
    ]


def test_more_examples_take_more_memory_exactly_where_they_should():
    small, large = estimate(mlp(), batch_size=8), estimate(mlp(), batch_size=8000)
    assert small.resident_bytes == large.resident_bytes
    assert small.phases["build"].peak_bytes == large.phases["build"].peak_bytes
    # The activations of both layers, at least, for 7992 examples more.
    assert large.peak_bytes - small.peak_bytes > 7992 * 60 * 4


@pytest.mark.parametrize("batch_size", [1, 10**6, 10**9])
def test_batches_of_any_size_are_exact_integers(batch_size):
    made = estimate(mlp(), batch_size=batch_size)
    assert isinstance(made.peak_bytes, int)
    assert made.peak_bytes > batch_size * 60 * 4
    assert sum(item.bytes for item in made.items) == made.peak_bytes


def test_adam_keeps_two_slots_and_sgd_none():
    adam, sgd = estimate(mlp("adam"), batch_size=8), estimate(mlp("sgd"), batch_size=8)
    slots = adam.phases["step"].categories[Category.OPTIMIZER_SLOTS]
    weights = adam.phases["step"].categories[Category.WEIGHTS]
    assert slots >= 2 * weights
    # Both kernels and both biases twice, each rounded up to 256 bytes.
    assert adam.resident_bytes - sgd.resident_bytes == 2 * (9728 + 256 + 768 + 256)


def test_an_optimizer_given_wins_over_the_models():
    model = mlp("adam")
    assert estimate(model, batch_size=8, optimizer="sgd").subject.optimizer == "SGD"
    assert type(model.optimizer).__name__ == "Adam"


def test_parameters_beyond_32_bits_are_exact():
    def build():
        layers = [keras.Input((157, 462, 14))]
        for filters in (16, 32, 64):
            layers += [L.Conv2D(filters, 5, activation="tanh"), L.MaxPooling2D(2)]
        return keras.Sequential([*layers, L.Flatten(), L.Dense(72534, name="huge")])

    made = estimate(build, batch_size=1, optimizer="adamax", loss="mse")
    assert made.subject.parameters == 4_010_982_310
    huge = next(layer for layer in made.layers if layer.path == "huge")
    assert huge.parameters == 4_010_912_598
    weights = [item for item in made.items if item.category is Category.WEIGHTS]
    assert sum(item.requested_bytes for item in weights) == 16_043_929_240
    assert json.loads(made.to_json())["resident_bytes"] == made.resident_bytes > 3 * 16_043_929_240


def test_large_tables_cost_nothing_to_estimate():
    def build():
        return keras.Sequential([keras.Input((20,), dtype="int32"), L.Embedding(10**9, 512, name="table"), L.Dense(1)])

    made = estimate(build, batch_size=128, optimizer="sgd", loss="mse")
    assert made.subject.parameters == 512 * 10**9 + 513
    assert made.resident_bytes > 4 * 512 * 10**9


# Modes and devices


def test_modes_that_are_none_are_refused_with_what_to_pass():
    for value in ("yes", 1, 0.0):
        with pytest.raises(UsageError, match=r"pass True for XLA, False for graph mode") as error:
            estimate(mlp(), batch_size=8, jit_compile=value)
        assert repr(value) in str(error.value)
    with pytest.raises(UsageError, match="exclude each other"):
        estimate(mlp(), batch_size=8, jit_compile=True, run_eagerly=True)
    with pytest.raises(UsageError, match="compile_timeout=-1: pass the seconds"):
        estimate(mlp(), batch_size=8, jit_compile=True, compile_timeout=-1)


def notes(made: Estimate) -> str:
    return "\n".join(made.assumptions)


@pytest.mark.parametrize(
    ("compiled", "asked", "mode", "words"),
    [
        ({}, {}, "graph", ""),
        ({"jit_compile": True}, {}, "xla", "compiled with XLA"),
        ({"jit_compile": True}, {"jit_compile": False}, "graph", ""),
        ({"jit_compile": True}, {"jit_compile": "auto"}, "graph", ""),
        ({"jit_compile": False}, {"jit_compile": True}, "xla", ""),
        ({}, {"device": "GPU"}, "xla", "on a GPU the default is XLA"),
        ({}, {"device": "GPU", "jit_compile": False}, "graph", ""),
        ({}, {"device": "GPU", "jit_compile": "auto"}, "xla", "On a GPU Keras compiles with XLA"),
    ],
)
def test_the_mode_is_the_one_asked_for_or_compiled_for_or_keras_choice_and_says_why(compiled, asked, mode, words):
    made = estimate(mlp(**compiled), batch_size=8, compile_timeout=0, **asked)
    assert made.subject.mode == mode
    assert words in notes(made)
    assert ("XLA" in notes(made)) == (mode == "xla")


@pytest.mark.parametrize(
    ("compiled", "device", "mode"),
    [
        ({}, "GPU", "xla"),
        ({"jit_compile": "auto"}, "GPU", "xla"),
        ({"jit_compile": False}, "GPU", "graph"),
        ({"jit_compile": True}, "GPU", "xla"),
        ({}, "CPU", "graph"),
        ({"run_eagerly": True}, "GPU", "eager"),
    ],
)
def test_what_a_function_compiles_its_model_with_is_seen_before_keras_resolves_it(compiled, device, mode):
    before = keras.Model.compile
    made = estimate(lambda: mlp(**compiled), batch_size=8, compile_timeout=0, device=device)
    assert made.subject.mode == mode
    assert "which is also what Keras makes of its default" not in notes(made)
    assert keras.Model.compile is before


def test_layers_that_xla_cannot_take_leave_the_model_in_graph_mode():
    model = mlp()
    model.get_layer("a").supports_jit = False
    made = estimate(model, batch_size=8, device="GPU")
    assert made.subject.mode == "graph"
    assert "The layer 'a' (Dense) does not support XLA" in notes(made)


def test_where_xla_is_not_to_be_asked_the_update_takes_no_memory_and_that_is_said():
    made, graph = (estimate(mlp(), batch_size=8, jit_compile=jit, compile_timeout=0) for jit in (True, False))
    assert "APPROXIMATION" in notes(made)
    assert "compile_timeout=0" in notes(made)
    assert made.resident_bytes == graph.resident_bytes
    assert made.peak_bytes < graph.peak_bytes


def test_scratch_that_is_not_counted_is_always_said():
    assert "Kernel workspace" in estimate(mlp(), batch_size=8).assumptions[-1]


def test_a_gpu_preallocates():
    subject = estimate(mlp(), batch_size=8, device="gpu", jit_compile=False).subject
    assert (subject.device, subject.pool) == ("GPU", "preallocated")
    assert estimate(mlp(), batch_size=8, device="CPU").subject.pool == "growth"


# Where it is called


def test_it_can_be_called_from_anywhere_and_leaves_no_trace():
    model = mlp()
    expected = estimate(model, batch_size=4)
    seen = []

    def ask():
        seen.append(estimate(model, batch_size=4))

    @tf.function
    def traced():
        ask()
        return tf.zeros(())

    class Asking(L.Layer):
        def call(self, x):
            ask()
            return x

    traced()
    assert [op.type for op in traced.get_concrete_function().graph.get_operations()] == ["Const", "Identity"]
    seen.clear()
    traced.get_concrete_function()
    graph = tf.Graph()
    with graph.as_default():
        ask()
    assert graph.get_operations() == []
    with tf.GradientTape():
        ask()
    Asking()(np.zeros((2, 2)))
    with tf.name_scope("here"), keras.name_scope("there"), tf.device("CPU:0"):
        ask()
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert len(seen) == 5
    assert all(one == expected for one in seen)


def test_it_can_be_called_in_the_middle_of_a_training():
    class Asking(keras.callbacks.Callback):
        made = None

        def on_train_batch_end(self, batch, logs=None):
            self.made = estimate(self.model, batch_size=4)

    asking = Asking()
    model = mlp()
    model.fit(np.zeros((8, 40)), np.zeros((8,)), batch_size=4, verbose=0, callbacks=[asking])
    assert asking.made is not None
    assert asking.made.resident_bytes == estimate(mlp(), batch_size=4).resident_bytes


def test_names_of_the_users_next_layers_do_not_shift():
    keras.utils.clear_session()
    estimate(lambda: keras.Sequential([keras.Input((3,)), L.Dense(1)]), batch_size=2, optimizer="adam", loss="mse")
    model = keras.Sequential([keras.Input((3,)), L.Dense(1)])
    assert (model.name, model.layers[0].name) == ("sequential", "dense")
