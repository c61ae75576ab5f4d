"""Steps that run eagerly."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.memory.category import Category

L = keras.layers


def build(**compiled) -> keras.Model:
    parts = [L.Dense(60, activation="relu", name="a"), L.Dropout(0.5), L.Dense(30, name="b")]
    model = keras.Sequential([keras.Input((40,)), *parts], name="model")
    model.compile("adam", "mse", **{"jit_compile": False, **compiled})
    return model


@pytest.fixture(scope="module")
def made():
    return estimate(build, batch_size=512, run_eagerly=True, validation_batch_size=8, predict_batch_size=16)


def test_every_byte_of_an_eager_run_is_told(made):
    assert made.subject.mode == "eager"
    assert list(made.phases) == ["build", "first_step", "step", "evaluate", "predict"]
    for phase in made.phases.values():
        assert sum(item.bytes for item in phase.live_at_peak) == phase.peak_bytes == phase.timeline.peak_bytes


def test_the_tape_holds_what_the_backward_pass_needs(made):
    held = {(item.layer, item.category) for item in made.phases["step"].live_at_peak}
    assert {("a", Category.WEIGHTS), ("a", Category.OPTIMIZER_SLOTS), ("a", Category.ACTIVATIONS)} <= held
    # Forward passes alone hold no more than two outputs at a time.
    assert Category.ACTIVATIONS not in made.phases["predict"].categories
    assert made.phases["predict"].peak_bytes < made.phases["step"].peak_bytes


def test_a_larger_batch_is_followed_anew(made):
    larger = made.at_batch_size(1024)
    again = estimate(build, batch_size=1024, run_eagerly=True, validation_batch_size=8, predict_batch_size=16)
    assert larger.phases["step"].peak_bytes == again.phases["step"].peak_bytes > made.phases["step"].peak_bytes


def test_a_model_that_is_compiled_for_it_is_estimated_eagerly_and_left_as_it_was():
    model = build(run_eagerly=True)
    before = dict(vars(model))
    made = estimate(model, batch_size=4)
    assert made.subject.mode == "eager"
    assert "The model is compiled with run_eagerly=True." in made.assumptions
    assert vars(model) == before
    assert not model.optimizer.built


def test_slots_come_to_be_after_the_forward_pass_which_gave_its_memory_up():
    def wide() -> keras.Model:
        parts = [L.Dense(512, activation="relu", use_bias=False, name="a"), L.Dense(1, use_bias=False, name="b")]
        model = keras.Sequential([keras.Input((512,)), *parts])
        model.compile("adam", "mse", jit_compile=False)
        return model

    first = estimate(wide, batch_size=4096, run_eagerly=True).phases["first_step"]
    kernel, outputs = 512 * 512 * 4, 4096 * 512 * 4
    # Weights, what the layer made and its gradient; not yet the two slots of a kernel, 2 MiB.
    assert first.requested_peak_bytes < kernel + 3 * outputs + 4096 * 512 * 4 + kernel


def test_kernels_have_workspace_in_eager_mode_too():
    def half() -> keras.Model:
        model = keras.Sequential([keras.Input((600,)), L.Dense(400, dtype="float16", name="a")])
        model.compile("sgd", "mse", jit_compile=False)
        return model

    made = estimate(half, batch_size=64, run_eagerly=True, predict_batch_size=64).phases["predict"]
    used = sum(item.requested_bytes for item in made.live_at_peak if item.category is Category.WORKSPACE)
    # TensorFlow multiplies halves as float32, all three matrices of them.
    assert used >= 600 * 400 * 4
    assert made.peak_bytes - made.peak_without_scratch_bytes >= 600 * 400 * 4


@pytest.mark.parametrize(("optimizer", "copies"), [("sgd", True), ("rmsprop", True), ("adam", False)])
def test_a_table_of_which_rows_were_changed_is_copied_for_every_read(optimizer, copies):
    def table() -> keras.Model:
        parts = [L.Embedding(5000, 32, name="table"), L.Flatten(), L.Dense(1, name="out")]
        model = keras.Sequential([keras.Input((4,), dtype="int32"), *parts])
        model.compile(optimizer, "mse", jit_compile=False)
        return model

    made = estimate(table, batch_size=2, run_eagerly=True, predict_batch_size=2)
    copied = [item for item in made.phases["predict"].live_at_peak if item.role.startswith("copy of a variable")]
    assert [(item.layer, item.requested_bytes) for item in copied] == [("table", 5000 * 32 * 4)] * copies
    if optimizer == "sgd":
        # It changes the rows in the first step; that one still reads the variable itself.
        grown = made.phases["step"].requested_peak_bytes - made.phases["first_step"].requested_peak_bytes
        assert grown >= 5000 * 32 * 4


def test_what_a_custom_gradient_needs_is_held_by_the_tape_alone():
    def gated() -> keras.Model:
        parts = [L.Dense(256, activation="silu", name=f"d{number}") for number in range(4)]
        model = keras.Sequential([keras.Input((256,)), *parts])
        model.compile("sgd", "mse", jit_compile=False)
        return model

    made = estimate(gated, batch_size=4096, run_eagerly=True, predict_batch_size=4096)
    output = 4096 * 256 * 4
    predict = made.phases["predict"]
    held = [item for item in predict.live_at_peak if item.category is Category.TEMPORARIES]
    # A functional model holds what its layers make until it is done, but nothing that was made on the way.
    assert [item.layer for item in held if item.layer in ("d0", "d1", "d2")] == ["d0", "d1", "d2"]
    assert sum(item.requested_bytes for item in held) == 6 * output
    # In training all four layers keep theirs.
    kept = [item for item in made.phases["step"].live_at_peak if item.requested_bytes == output]
    assert len(kept) >= 8


def test_what_softmax_was_given_stays_with_what_it_gave_until_the_prediction_ends():
    def classifier(activation):
        def build() -> keras.Model:
            return keras.Sequential([keras.Input((8,)), L.Dense(512, activation=activation, name="out")])

        return build

    output = 64 * 512 * 4
    for activation, kept in (("softmax", 2), ("relu", 1)):
        made = estimate(
            classifier(activation), batch_size=None, run_eagerly=True, predict_batch_size=64, predict_examples=256
        )
        held = [item for item in made.phases["predict"].live_at_peak if item.role == "output of predict"]
        assert sum(item.requested_bytes for item in held) == 4 * kept * output
        assert made.phases["predict"].host_peak_bytes == 4 * output


def test_what_an_activation_attached_to_a_tensor_goes_with_it():
    def deep() -> keras.Model:
        class Deep(keras.Layer):
            def build(self, shape):
                self.kernel = self.add_weight(shape=(256, 256))

            def call(self, x):
                for _ in range(6):
                    x = keras.activations.sigmoid(x @ self.kernel)
                return x

        return keras.Sequential([keras.Input((256,)), Deep()])

    made = estimate(deep, batch_size=None, run_eagerly=True, predict_batch_size=4096).phases["predict"]
    # The batch, and what two sigmoids gave and were given.
    assert 5 <= made.requested_peak_bytes / (4096 * 256 * 4) < 6


@pytest.mark.parametrize(("optimizer", "moves"), [("sgd", False), ("rmsprop", True)])
def test_steps_differ_where_updates_give_variables_other_memory(optimizer, moves):
    def uneven() -> keras.Model:
        parts = [L.Dense(900, use_bias=False), L.Dense(700, use_bias=False), L.Dense(3, use_bias=False)]
        model = keras.Sequential([keras.Input((500,)), *parts])
        model.compile(optimizer, "mse", jit_compile=False)
        return model

    low, high = estimate(uneven, batch_size=2, run_eagerly=True).phases["step"].peak_range
    assert (high > 1.01 * low) is moves


def test_slots_come_to_be_before_scaled_gradients_are_looked_at():
    def scaled() -> keras.Model:
        model = keras.Sequential([keras.Input((64,)), L.Dense(2048, use_bias=False, name="a")])
        model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()), "mse", jit_compile=False)
        return model

    ops = estimate(scaled, batch_size=2, run_eagerly=True).phases["first_step"].timeline.ops
    slot = next(number for number, op in enumerate(ops) if "a/kernel" in op and "initializer" in op)
    scaling = next(number for number, op in enumerate(ops) if "IsFinite" in op)
    assert slot < scaling


class Asking(keras.Model):
    """A model whose Python code asks for the values of tensors, as only eager steps may."""

    def __init__(self, asks: str) -> None:
        super().__init__()
        self.asks = asks
        self.hidden, self.last = L.Dense(60, activation="relu"), L.Dense(3)

    def call(self, x):
        if self.asks == "call" and tf.reduce_max(x) < 0:
            raise ValueError(float(tf.reduce_max(x)))
        return self.last(self.hidden(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        if self.asks == "step" and not np.isfinite(loss.numpy()):
            return {"loss": float(loss)}
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": float(loss) if self.asks == "step" else loss}

    def predict_step(self, data):
        return self(data).numpy() if self.asks == "step" else self(data)


def of_values(_, given):
    return float(np.mean(given.numpy()))


@pytest.mark.parametrize("asks", ["call", "step", "metric"])
def test_python_code_may_ask_for_values(asks):
    def asking(asks) -> keras.Model:
        model = Asking(asks)
        model.compile("adam", "mse", metrics=[of_values] if asks == "metric" else [], run_eagerly=True)
        return model

    given = {"batch_size": 64, "inputs": tf.TensorSpec((None, 400)), "predict_batch_size": 16}
    made, plain = (estimate(lambda asks=asks: asking(asks), **given) for asks in (asks, "nothing"))
    assert made.subject.mode == "eager"
    assert estimate(asking(asks), **given).phases["step"].peak_bytes == made.phases["step"].peak_bytes
    for name, phase in made.phases.items():
        # The scalars that are asked for, and what becomes of them.
        assert phase.peak_bytes == pytest.approx(plain.phases[name].peak_bytes, abs=2**11)
