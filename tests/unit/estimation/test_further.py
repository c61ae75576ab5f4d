"""Evaluation and prediction, each with a batch size of its own."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers


def untrained() -> keras.Model:
    parts = [L.Dense(400, activation="relu", name="wide"), L.BatchNormalization(), L.Dense(30, name="out")]
    return keras.Sequential([keras.Input((200,)), *parts], name="model")


def compiled(**options) -> keras.Model:
    model = untrained()
    model.compile("adam", "mse", metrics=["mae"], jit_compile=False, **options)
    return model


def test_phases_that_are_asked_for_come_after_training_in_their_order():
    made = estimate(compiled, batch_size=8, validation_batch_size=512, predict_batch_size=16)
    assert list(made.phases) == ["build", "first_step", "step", "evaluate", "predict"]
    assert list(estimate(compiled, batch_size=8).phases) == ["build", "first_step", "step"]
    for phase in made.phases.values():
        assert sum(item.bytes for item in phase.live_at_peak) == phase.peak_bytes == phase.timeline.peak_bytes
    assert Estimate.from_json(made.to_json()).phases == made.phases
    # The peak is that of training, but a run fits only if all of it does.
    assert made.peak_bytes == max(made.phases[name].peak_bytes for name in ("first_step", "step"))
    evaluating = made.phases["evaluate"].peak_bytes
    assert evaluating > made.peak_bytes
    assert not made.fits(evaluating - 1)
    assert "evaluating" in str(made.fits(evaluating - 1))
    assert any("step of evaluate is for a batch of 512" in note for note in made.assumptions)


def test_evaluation_keeps_no_gradients_but_the_slots_of_the_training_it_is_part_of():
    made = estimate(compiled, batch_size=8, validation_batch_size=64)
    found = made.phases["evaluate"].categories
    assert Category.GRADIENTS not in found
    assert Category.ACTIVATIONS not in found
    # What the pool hands out beside differs from phase to phase; what is asked for does not.
    training, evaluating = (
        sum(
            item.requested_bytes for item in made.phases[name].live_at_peak if item.category is Category.OPTIMIZER_SLOTS
        )
        for name in ("step", "evaluate")
    )
    assert evaluating == training == 2 * made.subject.trainable_parameters * 4 + 12
    # 64 examples of 200 numbers, 30 targets each.
    (batch, targets) = sorted(
        item.requested_bytes for item in made.phases["evaluate"].live_at_peak if item.role == "batch"
    )
    assert (batch, targets) == (64 * 30 * 4, 64 * 200 * 4)


def test_a_model_that_is_not_compiled_can_be_estimated_for_prediction_alone():
    made = estimate(untrained(), batch_size=None, predict_batch_size=32)
    assert list(made.phases) == ["build", "predict"]
    assert (made.subject.batch_size, made.subject.optimizer) == (32, None)
    assert made.peak_phase.name == "predict"
    assert made.resident_bytes == sum(
        -(-size * 4 // 256) * 256 for size in (200 * 400, 400, 400, 400, 400, 400, 12000, 30)
    )
    # Two layers' outputs and the batch, at most.
    assert made.resident_bytes < made.peak_bytes <= made.resident_bytes + 32 * (200 + 2 * 400) * 4 + 2**12
    assert made.phases["predict"].host_peak_bytes == 32 * 30 * 4
    assert "predict was estimated for one batch" in "".join(made.assumptions)
    assert made.at_batch_size(64).peak_bytes > made.peak_bytes
    assert Estimate.from_json(made.to_json()) == made


@pytest.mark.parametrize("how", [{}, {"run_eagerly": True}, {"compile_timeout": 60, "jit_compile": True}])
def test_predict_keeps_all_outputs_on_the_device_joins_them_and_copies_them_to_the_host(how):
    def build() -> keras.Model:
        image = keras.Input((16, 16, 1))
        return keras.Model(image, [L.Conv2D(40, 3, padding="same", name="a")(image), L.Flatten(name="b")(image)])

    options = {"optimizer": "sgd", "loss": "mse", "batch_size": 4, "predict_batch_size": 8, **how}
    one, many = (estimate(build, **options, predict_examples=count).phases["predict"] for count in (None, 42))
    of_example = 16 * 16 * (40 + 1) * 4
    assert (one.host_peak_bytes, many.host_peak_bytes) == (8 * of_example, 42 * of_example)
    joined = [item for item in many.live_at_peak if item.role == "all outputs of predict"]
    assert [item.shape for item in joined] == [(42, 16, 16, 40), (42, 256)]
    held = [item for item in many.live_at_peak if item.role == "output of predict"]
    # Five batches of 8 and the outputs that the last one of 2 leaves; the parts are there while they are joined.
    assert sum(item.requested_bytes for item in held) == 42 * of_example
    assert many.requested_peak_bytes - one.requested_peak_bytes > (2 * 42 - 3 * 8) * of_example
    assert many.peak_bytes == sum(item.bytes for item in many.live_at_peak) == many.timeline.peak_bytes
    for moment in range(0, len(many.timeline), 7):
        assert sum(item.bytes for item in many.allocations.items_at(moment)) == many.timeline.live_bytes[moment]


@pytest.mark.parametrize("how", [{"jit_compile": False}, {"run_eagerly": True}])
def test_a_model_that_its_first_prediction_builds(how):
    unbuilt, built = (keras.Sequential([*given, L.Dense(60, name="a")]) for given in ([], [keras.Input((40,))]))
    found, expected = (
        estimate(model, batch_size=None, inputs=tf.TensorSpec((None, 40)), predict_batch_size=32, **how)
        for model in (unbuilt, built)
    )
    assert found.resident_bytes == expected.resident_bytes
    assert found.phases["predict"].peak_bytes == pytest.approx(expected.phases["predict"].peak_bytes, abs=2**10)


def test_how_much_is_predicted_is_a_number_and_about_prediction():
    with pytest.raises(UsageError, match="predict_examples must be a positive integer, not 0"):
        estimate(untrained(), batch_size=None, predict_batch_size=4, predict_examples=0)
    with pytest.raises(UsageError, match=r"predict_examples=9 is about prediction.*pass predict_batch_size="):
        estimate(compiled, batch_size=4, predict_examples=9)


def test_without_a_batch_size_for_prediction_there_has_to_be_an_optimizer():
    with pytest.raises(UsageError, match="For prediction alone pass predict_batch_size="):
        estimate(untrained(), batch_size=4)
    for called in ("validation_batch_size", "predict_batch_size"):
        with pytest.raises(UsageError, match=f"^{called} must be a positive integer, not 0"):
            estimate(compiled, batch_size=4, **{called: 0})


def test_the_model_is_left_as_it_was():
    model = compiled()
    before = dict(vars(model))
    estimate(model, batch_size=4, validation_batch_size=4, predict_batch_size=4)
    assert vars(model) == before
