"""Advice: each change is what making it by hand would be estimated to need."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.advise import advice as advising
from tensorboard_plugin_memest.advise.activations import smaller_inputs
from tensorboard_plugin_memest.advise.architecture import architecture
from tensorboard_plugin_memest.advise.blueprint import blueprint_of
from tensorboard_plugin_memest.advise.proposal import why_not
from tensorboard_plugin_memest.advise.workshop import Workshop
from tensorboard_plugin_memest.estimation import deadline
from tensorboard_plugin_memest.estimation import model as estimation
from tensorboard_plugin_memest.estimation.function import estimate_function
from tensorboard_plugin_memest.estimation.saving import FIRST_FILE
from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers


def estimate(subject, batch_size: int = 2, **options) -> Estimate:
    """For a GPU, whose one order is played quickly, and with XLA approximated instead of asked."""
    options = {"jit_compile": False, **options}
    return estimation.estimate(subject, batch_size=batch_size, device="GPU", compile_timeout=0, **options)


def images(before_dense=lambda: [L.Flatten()], units: int = 24) -> keras.Model:
    """Convolutions, and a Dense on all they make, which holds nearly all parameters."""
    model = keras.Sequential(
        [
            keras.Input((40, 40, 1)),
            L.Conv2D(4, 3, activation="relu"),
            *before_dense(),
            L.Dense(units, activation="relu"),
            L.Dense(1),
        ]
    )
    model.compile("adam", "mse", jit_compile=False)
    return model


@pytest.fixture(scope="module")
def advice() -> Advice:
    made = estimate(images)
    return made.advice(made.peak_bytes * 3 // 4)


def lever(advice: Advice, name: str):
    return next(one for one in (*advice.levers, *advice.useless) if one.name == name)


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("global_pooling", lambda: images(lambda: [L.GlobalAveragePooling2D()])),
        ("smaller_dense_12", lambda: images(units=12)),
        ("smaller_dense_3", lambda: images(units=3)),
    ],
)
def test_changes_to_the_model(advice, name, by_hand):
    found = lever(advice, name)
    assert found.peak_bytes == estimate(by_hand).peak_bytes
    assert found.saving_bytes == advice.peak_bytes - found.peak_bytes > 0
    assert sum(found.saving_by_category.values()) == found.saving_bytes
    assert found.saving_by_category[Category.OPTIMIZER_SLOTS] > 0
    assert found.fits == (found.needs_bytes <= advice.limit_bytes)


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("sgd", lambda: keras.optimizers.SGD(0.01)),
        ("sgd_momentum", lambda: keras.optimizers.SGD(0.01, momentum=0.9)),
        ("adafactor", keras.optimizers.Adafactor),
        ("lion", keras.optimizers.Lion),
    ],
)
def test_optimizers(advice, name, optimizer):
    assert lever(advice, name).peak_bytes == estimate(images, optimizer=optimizer()).peak_bytes


def test_what_is_trained(advice):
    def frozen() -> keras.Model:
        model = images()
        for layer in model.layers[:-1]:
            layer.trainable = False
        model.compile("adam", "mse")
        return model

    def adapted() -> keras.Model:
        model = images()
        model.layers[2].enable_lora(8)
        model.compile("adam", "mse")
        return model

    assert lever(advice, "freeze").peak_bytes == estimate(frozen).peak_bytes
    assert lever(advice, "lora").peak_bytes == estimate(adapted).peak_bytes


def test_mixed_precision_does_not_help_where_weights_are_what_there_is(advice):
    found = lever(advice, "mixed_float16")
    keras.config.set_dtype_policy("mixed_float16")
    try:
        assert found.peak_bytes == estimate(images).peak_bytes
    finally:
        keras.config.set_dtype_policy("float32")
    assert found in advice.useless
    assert "weights, gradients and slots stay float32" in found.reason


def test_replicas_do_not_share_weights(advice):
    assert "own copy of weights" in lever(advice, "mirrored_strategy").reason


def test_they_are_ranked(advice):
    assert [(not one.fits, one.peak_bytes) for one in advice.levers] == sorted(
        (not one.fits, one.peak_bytes) for one in advice.levers
    )
    assert not advice.fits
    assert len(advice.combination.names) == 1
    # Of all that fit, what changes least: not the model.
    assert advice.combination.names[0] in {"sgd", "xla"}


def test_it_reads_well_and_can_be_written_down(advice):
    text = str(advice)
    assert "Global average pooling instead of flatten" in text
    assert "Does not help:" in text
    assert "GlobalAveragePooling2D()" in text
    assert max(len(line) for line in text.splitlines()) <= 120
    assert Advice.from_json(advice.to_json()) == advice


def test_nothing_is_left_behind(advice):
    assert keras.config.dtype_policy().name == "float32"


def wide() -> keras.Model:
    inputs = keras.Input((16, 16, 3))
    x = inputs
    for number in range(3):
        x = L.Conv2D(8, 3, padding="same", activation="relu", name=f"conv_{number}")(x)
    model = keras.Model(inputs, L.Dense(3, name="head")(L.GlobalAveragePooling2D()(x)))
    model.compile(keras.optimizers.Adam(0.002), "mse", jit_compile=False)
    return model


@pytest.fixture(scope="module")
def advice_for_activations() -> tuple[keras.Model, Estimate, Advice]:
    model = wide()
    made = estimate(model, 32)
    return model, made, made.advice(made.peak_bytes // 3)


def test_a_model_that_exists_is_made_again(advice_for_activations):
    model, made, advice = advice_for_activations
    found = lever(advice, "mixed_float16")
    keras.config.set_dtype_policy("mixed_float16")
    try:
        assert found.peak_bytes == estimate(wide, 32).peak_bytes < made.peak_bytes
    finally:
        keras.config.set_dtype_policy("float32")
    assert found in advice.levers
    assert not model.optimizer.built
    assert model.layers[1].dtype_policy.name == "float32"


def test_batches(advice_for_activations):
    model, made, advice = advice_for_activations
    assert lever(advice, "half_batch").peak_bytes == made.at_batch_size(16).peak_bytes
    assert advice.max_batch_size == made.max_batch_size(advice.limit_bytes)
    assert lever(advice, "largest_batch").fits
    accumulating = keras.optimizers.Adam(0.002, gradient_accumulation_steps=4)
    assert lever(advice, "accumulation").peak_bytes == estimate(model, 8, optimizer=accumulating).peak_bytes
    assert all(peak == made.at_batch_size(size).peak_bytes for size, peak in advice.batch_curve)


def test_two_changes_where_one_is_not_enough():
    def build() -> keras.Model:
        tokens = keras.Input((4,), dtype="int32")
        x = L.Flatten()(L.Embedding(4000, 32, name="words")(tokens))
        model = keras.Model(tokens, L.Dense(1, name="head")(x))
        model.compile("adam", "mse", jit_compile=False)
        return model

    def needs(one: Estimate) -> int:
        return max(phase.peak_range[1] for phase in one.phases.values())

    made = estimate(build, 1)
    with_sgd = estimate(build, 1, optimizer="sgd")
    advice = made.advice(needs(with_sgd) * 9 // 10)
    found = lever(advice, "factorized_embedding")
    assert found.saving_bytes > 0
    if not any(one.fits for one in advice.levers):
        assert len(advice.combination.names) > 1
    assert advice.combination.needs_bytes <= advice.limit_bytes


def test_changes_are_tried_with_what_else_was_asked_for():
    made = estimate(images, 2, validation_batch_size=64)
    workshop = Workshop(made.origin, made)
    found = {one.name: one for one in workshop.proposals()}
    tried = workshop.tried(found["sgd"].change)
    assert tried.phases.keys() == made.phases.keys() > {"step", "evaluate"}
    by_hand = estimate(images, 2, validation_batch_size=64, optimizer=keras.optimizers.SGD(0.01))
    assert {name: phase.peak_bytes for name, phase in tried.phases.items()} == {
        name: phase.peak_bytes for name, phase in by_hand.phases.items()
    }


def test_subclassed_models_get_what_can_be_tried():
    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = L.Dense(8)
            self.out = L.Dense(1)

        def call(self, x):
            return self.out(self.hidden(x))

    def build() -> keras.Model:
        model = Own()
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimate(build, inputs=tf.TensorSpec((None, 6), "float32"))
    workshop = Workshop(made.origin, made)
    found = {one.name: one for one in workshop.proposals()}
    assert found.keys() >= {"sgd", "mixed_float16", "half_batch", "accumulation", "xla"}
    assert "global_pooling" not in found
    assert workshop.tried(found["half_batch"].change).subject.batch_size == 1
    assert workshop.tried(found["sgd"].change).resident_bytes < made.resident_bytes


class _Scaled(L.Layer):
    """A layer whose scope's name begins with an underscore."""

    def build(self, shape):
        self.scale = self.add_weight(shape=shape[-1:], name="scale")

    def call(self, x):
        return x * self.scale


@pytest.mark.parametrize("eager", [False, True])
def test_whatever_can_be_estimated_can_be_looked_at(eager):
    def build() -> keras.Model:
        inputs = keras.Input((8,))
        width = int(tf.constant(16).numpy()) if eager else 16
        model = keras.Model(inputs, L.Dense(1)(_Scaled()(L.Dense(width, name="wide")(inputs))))
        model.compile("adam", "mse", jit_compile=False)
        return model

    workshop = Workshop((made := estimate(build)).origin, made)
    names = {one.name for one in workshop.proposals()}
    assert {"freeze", "smaller_dense_8", "accumulation"} <= names
    assert not [note for note in workshop.notes if "cannot be looked at" in note]


def test_an_estimate_that_was_read_back_says_what_to_do():
    again = Estimate.from_json(estimate(images).to_json())
    with pytest.raises(UsageError, match=r"advice\(\) needs the model"):
        again.advice("1GB")


class Loop:
    """A training loop of one's own, with its model and optimizer."""

    def __init__(self, optimizer) -> None:
        self.model = keras.Sequential([keras.Input((64,)), L.Dense(256, activation="relu"), L.Dense(1)])
        self.optimizer = optimizer

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(x) - y))
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss


def test_a_step_function_gets_other_optimizers_and_batches():
    specs = tf.TensorSpec((64, 64)), tf.TensorSpec((64, 1))
    loop = Loop(keras.optimizers.Adam(0.001))
    made = estimate_function(loop.step, *specs, device="GPU")
    advice = made.advice(made.peak_bytes // 2)
    with_sgd = estimate_function(Loop(keras.optimizers.SGD(0.01)).step, *specs, device="GPU")
    assert lever(advice, "sgd").peak_bytes == with_sgd.peak_bytes < made.peak_bytes
    assert lever(advice, "half_batch").peak_bytes == made.at_batch_size(32).peak_bytes
    assert "memest.estimate(model, ...)" in advice.notes[0]
    assert type(loop.optimizer) is keras.optimizers.Adam
    assert not loop.optimizer.built


def tokens_and_scores() -> keras.Model:
    tokens = keras.Input((6,), dtype="int32")
    x = L.Dense(16)(L.Embedding(2500, 16)(tokens))
    model = keras.Model(tokens, L.Dense(2500, activation="softmax", name="scores")(x))
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    return model


def tried(made: Estimate, name: str) -> tuple[object, Estimate]:
    workshop = Workshop(made.origin, made)
    proposal = next(one for one in workshop.proposals() if one.name == name)
    return proposal, workshop.tried(proposal.change)


def test_a_sampled_softmax_never_makes_the_scores():
    made = estimate(tokens_and_scores, 32)
    proposal, after = tried(made, "sampled_softmax")
    scores = 32 * 6 * 2500 * 4
    assert any(item.requested_bytes == scores for item in made.items)
    assert not any(item.requested_bytes >= scores for item in after.items)
    assert after.peak_bytes < made.peak_bytes - scores / 2
    assert after.subject.parameters == made.subject.parameters
    assert "sampled.set_classes(2500, " in proposal.code


def test_what_flattens_is_found_behind_what_passes_it_on():
    def build() -> keras.Model:
        parts = [keras.Input((2, 4, 4, 32)), L.TimeDistributed(L.Flatten(), name="flat"), L.Dropout(0.1)]
        model = keras.Sequential([*parts, L.LSTM(16), L.Dense(2)])
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimate(build)
    proposal, after = tried(made, "global_pooling")
    kernels = [item.shape for one in (made, after) for item in one.items if item.role == "weight" and item.shape]
    assert (512, 64) in kernels
    assert (32, 64) in kernels
    assert after.peak_bytes < made.peak_bytes / 4
    assert proposal.code.startswith("layers.TimeDistributed(layers.GlobalAveragePooling2D())")
    assert {"smaller_lstm_8", "pooling", "bottleneck"} <= {one.name for one in Workshop(made.origin, made).proposals()}


def test_what_callbacks_and_validation_take_is_judged_too(tmp_path):
    checkpoint = keras.callbacks.ModelCheckpoint(str(tmp_path / "model.keras"))
    board = keras.callbacks.TensorBoard(str(tmp_path), histogram_freq=1)
    made = estimate(images, 2, callbacks=[checkpoint, board], validation_batch_size=4096)
    _, without = tried(made, "histogram_freq")
    _, smaller = tried(made, "checkpoint_format")
    _, in_batches = tried(made, "validation_batch")
    host = [one.phases["checkpoint"].host_peak_bytes for one in (made, without, smaller)]
    largest = 38 * 38 * 4 * 24
    # A whole file has weights and both slots, and two more copies of the largest.
    whole = FIRST_FILE + 5 * 4 * largest
    assert host == [240 * largest, pytest.approx(whole, rel=0.01), 240 * largest]
    assert in_batches.phases["evaluate"].peak_bytes < made.phases["evaluate"].peak_bytes / 50


def test_what_trains_eagerly_is_tried_eagerly_and_as_a_graph():
    made = estimate(images, 2, run_eagerly=True, jit_compile=None)
    assert made.subject.mode == "eager"
    assert tried(made, "sgd")[1].subject.mode == "eager"
    assert tried(made, "graph")[1].subject.mode == "graph"


def test_layers_that_building_uses_again_are_not_changed_by_what_was_tried():
    parts = [keras.Input((32,)), L.Dense(64), L.Dense(16), L.Dense(1)]

    def compiled(layers) -> keras.Model:
        model = keras.Sequential(layers)
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimate(lambda: compiled(parts))
    _, before = tried(made, "smaller_dense_32")
    tried(made, "freeze")
    tried(made, "lora")
    assert tried(made, "smaller_dense_32")[1].peak_bytes == before.peak_bytes
    assert not any(layer.built for layer in parts[1:])
    assert all(layer.trainable for layer in parts[1:])
    assert not parts[1].lora_enabled


def test_layers_whose_size_others_share_keep_it():
    def build() -> keras.Model:
        inputs = keras.Input((8, 8, 4))
        x = L.Conv2D(8, 3, padding="same", name="free")(inputs)
        x = L.Conv2D(4, 3, padding="same", name="shared")(x)
        x = L.Dense(256, name="reshaped")(L.Flatten()(L.Add()([inputs, L.ReLU()(x)])))
        model = keras.Model(inputs, L.Dense(1)(L.Reshape((16, 16))(x)))
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimate(build)
    blueprint = Workshop(made.origin, made).blueprint()
    # As if each had most of the parameters.
    alike = replace(blueprint, parts=tuple(replace(part, parameters=blueprint.parameters) for part in blueprint.parts))
    changed = [one.title for one in architecture(alike) if one.name.startswith("smaller_")]
    assert {title.split(": ")[1].split()[0] for title in changed} == {"free"}


def test_a_model_that_exists_is_changed_with_evaluation_in_batches_of_another_size():
    made = estimate(images(), 2, validation_batch_size=8)
    after = tried(made, "smaller_dense_12")[1]
    assert after.phases["evaluate"].peak_bytes < made.phases["evaluate"].peak_bytes


def maps(side: int = 96, filters: tuple[int, int, int] = (16, 32, 16)) -> keras.Model:
    """Down, up again and joined with what was before: sides must be even, and activations are what there is."""
    inputs = keras.Input((side, side, 3))
    before = L.Conv2D(filters[0], 3, padding="same", activation="relu")(inputs)
    x = L.Conv2D(filters[1], 3, padding="same", activation="relu")(L.MaxPooling2D()(before))
    x = L.Conv2DTranspose(filters[2], 2, strides=2)(x)
    model = keras.Model(inputs, L.Conv2D(2, 1, name="map")(L.Concatenate()([before, x])))
    model.compile("adam", "mse", jit_compile=False)
    return model


def test_where_activations_are_what_there_is_they_are_made_smaller_first():
    made = estimate(maps)
    workshop = Workshop(made.origin, made)
    found = {one.name: one for one in workshop.proposals()}
    order = list(found)
    assert order.index("smaller_input") < order.index("mixed_float16") < order.index("narrower") < order.index("sgd")
    assert not [name for name in found if name.startswith("smaller_conv2d")], "weights are next to nothing"
    for name, by_hand in (("smaller_input", lambda: maps(32)), ("narrower", lambda: maps(filters=(8, 16, 8)))):
        assert workshop.tried(found[name].change).peak_bytes == estimate(by_hand).peak_bytes
    # Of a model that exists as of a function that builds it.
    existing = estimate(maps())
    assert Workshop(existing.origin, existing).tried(found["smaller_input"].change).subject.parameters == (
        made.subject.parameters
    )
    # What the caller said of the batch stays.
    told = estimate(maps, inputs=tf.TensorSpec((None, 96, 96, 3)))
    assert "smaller_input" not in {one.name for one in Workshop(told.origin, told).proposals()}


def test_a_layer_that_is_the_peak_by_itself_gains_nothing_by_running_again():
    def build() -> keras.Model:
        inputs = keras.Input((128, 16))
        model = keras.Model(inputs, L.Dense(1)(L.MultiHeadAttention(4, 4)(inputs, inputs)))
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimate(build, 16)
    workshop = Workshop(made.origin, made)
    again = next(one for one in workshop.proposals() if one.name == "recomputation")
    after = workshop.tried(again.change)
    assert after.peak_bytes > 0.95 * made.peak_bytes
    assert why_not(again, made, after).startswith("a layer needs as much for itself when it runs again")


def sequence_of_frames(side: int) -> keras.Model:
    each = keras.Sequential([keras.Input((side, side, 1)), L.Conv2D(4, 3), L.Flatten(), L.Dense(6)])
    return keras.Sequential([keras.Input((100, side, side, 1)), L.TimeDistributed(each), L.LSTM(4), L.Dense(1)])


@pytest.mark.parametrize(
    ("build", "title"),
    [
        (lambda: sequence_of_frames(64), "Inputs of 100 x 32 x 32 x 1 instead of 100 x 64 x 64 x 1"),
        (
            lambda: keras.Sequential([keras.Input((2, 64, 72)), L.Conv2D(4, 3, data_format="channels_first")]),
            "Inputs of 2 x 32 x 32 instead of 2 x 64 x 72",
        ),
        (
            lambda: keras.Sequential([keras.Input((64, 64, 240, 1)), L.Conv3D(4, 3), L.Dense(1)]),
            "Inputs of 32 x 32 x 112 x 1 instead of 64 x 64 x 240 x 1",
        ),
        (
            lambda: keras.Sequential([keras.Input((500, 3)), L.GRU(4), L.Dense(1)]),
            "Inputs of 248 x 3 instead of 500 x 3",
        ),
        (lambda: keras.Sequential([keras.Input((500,)), L.Dense(1)]), None),
        (lambda: keras.Sequential([keras.Input((32, 32, 3)), L.Conv2D(4, 3)]), None),
    ],
    ids=["frames", "channels first", "volumes", "sequences", "features", "small already"],
)
def test_inputs_are_cut_where_they_are_places(build, title):
    model = build()
    found = {one.title: one for one in smaller_inputs(blueprint_of(model, None))}
    assert list(found) == ([title] if title else [])
    for proposal in found.values():
        (edit,) = proposal.change.edits
        shape = edit(model).inputs[0].shape
        assert title.startswith(f"Inputs of {' x '.join(map(str, shape[1:]))} instead")


def test_what_joins_places_joins_those_of_smaller_inputs():
    """Each pixel's classes in a row, and each column of a text's picture as a step: (128, 32, 4) and (128, 128)."""

    def build(width: int = 128, height: int = 64) -> keras.Model:
        inputs = keras.Input((width, height, 1))
        x = L.MaxPooling2D((1, 2))(L.Conv2D(4, 3, padding="same")(inputs))
        text = L.Conv1D(4, 3)(L.Reshape((width, height // 2 * 4))(x))
        pixels = L.Softmax()(L.Reshape((width * (height // 2), 4))(x))
        model = keras.Model(inputs, [L.Dense(2)(text), pixels])
        model.compile("adam", ["mse", "categorical_crossentropy"], jit_compile=False)
        return model

    made = estimate(build)
    workshop = Workshop(made.origin, made)
    smaller = next(one for one in workshop.proposals() if one.name == "smaller_input")
    assert workshop.tried(smaller.change).peak_bytes == estimate(lambda: build(64, 32)).peak_bytes
    assert "the target_shape of reshape, reshape_1 for" in smaller.code.replace(
        "reshape_2, reshape_3", "reshape, reshape_1"
    )


def test_that_a_layer_takes_inputs_of_one_size_is_told():
    def build() -> keras.Model:
        layers = [L.Reshape((4096, 1)), L.Dense(2), L.Reshape((64, 64, 2))]
        model = keras.Sequential([keras.Input((64, 64, 1)), *layers])
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimate(build)
    workshop = Workshop(made.origin, made)
    smaller = next(one for one in workshop.proposals() if one.name == "smaller_input")
    with pytest.raises(UsageError, match=r"one size only: .*input_shape=\(1024, 2\), target_shape=\(64, 64, 2\)"):
        workshop.tried(smaller.change)


def test_a_dense_for_each_step_is_one_for_all():
    def build(distributed: bool = True, masked: bool = False) -> keras.Model:
        inputs = keras.Input((12,), dtype="int32")
        x = L.Embedding(3000, 16, mask_zero=masked)(inputs)
        head = L.Dense(3000, activation="softmax")
        model = keras.Model(inputs, (L.TimeDistributed(head) if distributed else head)(x))
        model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
        return model

    made = estimate(build, 4)
    workshop = Workshop(made.origin, made)
    found = {one.name: one for one in workshop.proposals()}
    after = workshop.tried(found["undistributed"].change)
    # The model that is changed was made before, and what that made beside variables leaves other holes.
    assert after.peak_bytes == pytest.approx(estimate(lambda: build(False), 4).peak_bytes, rel=0.005)
    # Each step had a gradient of the kernel, all there until they are added up.
    assert made.peak_bytes - after.peak_bytes > 4 * 16 * 3000 * 4
    assert found["undistributed"].code.startswith('layers.Dense(3000, activation="softmax")  # instead of')
    # What is done about many words is done there, too.
    for name in ("chunked_softmax", "sampled_softmax"):
        assert workshop.tried(found[name].change).peak_bytes < made.peak_bytes
    masked = estimate(lambda: build(masked=True), 4)
    workshop = Workshop(masked.origin, masked)
    found = {one.name: one for one in workshop.proposals()}
    after = workshop.tried(found["undistributed"].change)
    assert after.peak_bytes == pytest.approx(estimate(lambda: build(False, masked=True), 4).peak_bytes, rel=0.005)
    assert "undistributed" not in {one.name for one in Workshop(after.origin, after).proposals()}


def test_what_a_wrapper_wraps_takes_the_outputs_of_a_smaller_layer_before_it():
    def build(units: int) -> keras.Model:
        layers = [L.LSTM(units, return_sequences=True), L.TimeDistributed(L.Dense(4), name="head")]
        model = keras.Sequential([keras.Input((3, 8)), *layers])
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimate(lambda: build(512), 2)
    workshop = Workshop(made.origin, made)
    smaller = next(one for one in workshop.proposals() if one.name.startswith("smaller_lstm"))
    units = int(smaller.name.rpartition("_")[2])
    assert workshop.tried(smaller.change).peak_bytes == estimate(lambda: build(units), 2).peak_bytes


def test_a_kernel_whose_outputs_are_asked_for_has_fewer_inputs():
    def build(narrow: int = 32) -> keras.Model:
        layers = [L.Dense(narrow, activation="relu"), L.Dropout(0.1), L.Dense(4096), L.Reshape((64, 64, 1))]
        model = keras.Sequential([keras.Input((8,)), *layers])
        model.compile("adam", "mse", jit_compile=False)
        return model

    made = estimate(build)
    found = {one.name: one for one in Workshop(made.origin, made).proposals()}
    assert [name for name in found if name.startswith("smaller_dense")] == ["smaller_dense_16", "smaller_dense_4"]
    after = Workshop(made.origin, made).tried(found["smaller_dense_4"].change)
    assert after.peak_bytes == pytest.approx(estimate(lambda: build(4)).peak_bytes, rel=0.005)
    assert after.peak_bytes < made.peak_bytes / 2


def test_when_the_time_is_up_it_says_what_was_left_out():
    made = estimate(images)
    for wrong in ("60", -1, True):
        with pytest.raises(UsageError, match="seconds= takes a number"):
            made.advice(made.peak_bytes // 2, seconds=wrong)
    advice = made.advice(made.peak_bytes // 2, seconds=0)
    assert not {one.name for one in advice.levers} & {"sgd", "global_pooling"}
    assert (advice.max_batch_size, advice.batch_curve) == (None, ((2, made.peak_bytes),))
    assert any(note.startswith("The largest batch that fits was not found") for note in advice.notes)
    assert any(
        note.startswith("After 0 seconds these were left out: ") and "; Optimizer SGD; " in note
        for note in advice.notes
    )


def test_in_time_every_change_is_told_or_left_out_and_nothing_goes_on_when_it_is_up(monkeypatch):
    def build() -> keras.Model:
        layers = [L.Conv2D(4, 3, name="a"), L.Flatten(name="b"), L.Dense(24, name="c"), L.Dense(1, name="d")]
        model = keras.Sequential([keras.Input((40, 40, 1)), *layers])
        model.compile("adam", "mse", jit_compile=False)
        return model

    # A clock that a look at it moves on by a second.
    looks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(looks)))
    monkeypatch.setattr(deadline, "monotonic", clock.monotonic)
    monkeypatch.setattr(advising, "time", clock)
    with deadline.deadline(10**9):
        made = estimate(build)
    seconds = 5 * next(looks)
    everything = {one.title for one in Workshop(made.origin, made).proposals()}
    begun = next(looks)
    found = made.advice(made.peak_bytes * 3 // 4, seconds=seconds)
    took = next(looks) - begun
    told = {one.title for one in (*found.levers, *found.useless)}
    (note,) = [one for one in found.notes if one.startswith(f"After {seconds} seconds these were left out: ")]
    left_out = set(note.partition(": ")[2].rstrip(".").split("; "))
    assert told & everything
    assert left_out == everything - told
    # Each further look ends what it is in.
    assert took < seconds + 10 * len(everything)
