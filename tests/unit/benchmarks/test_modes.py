"""The benchmark of all modes and phases."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from rich.console import Console

from benchmarks import measure_modes, modes
from benchmarks.configuration import Configuration
from benchmarks.data import drawn_batches


def model() -> keras.Model:
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    made.compile("sgd", "mse", jit_compile=False)
    return made


@pytest.mark.parametrize("mode", measure_modes.MODES)
def test_a_model_runs_in_the_mode_that_is_measured(mode):
    made = measure_modes.in_mode(model(), mode)
    assert (made.jit_compile, made.run_eagerly) == (mode == "xla", mode == "eager")


def test_a_model_that_xla_cannot_take_is_not_measured_as_another_one():
    made = model()
    made.layers[0].supports_jit = False
    with pytest.warns(UserWarning, match="support"), pytest.raises(ValueError, match="does not support XLA"):
        measure_modes.in_mode(made, "xla")


def test_batches_are_drawn_anew_in_the_shapes_and_types_that_the_model_takes():
    words = tf.TensorSpec((None, 5), "int32")
    asked = Configuration("words", "family", model, 4, {"words": words}, tf.TensorSpec((None,), "int64"), vocabulary=30)
    first, second = drawn_batches(asked, model()).take(2)
    inputs, targets = first
    assert (inputs["words"].shape, inputs["words"].dtype) == ((4, 5), tf.int32)
    assert (targets.shape, targets.dtype) == ((4,), tf.int64)
    assert int(tf.reduce_min(inputs["words"])) >= 0
    assert 1 < int(tf.reduce_max(inputs["words"])) < 30
    assert int(tf.reduce_max(targets)) < 2
    assert bool(tf.reduce_any(inputs["words"] != second[0]["words"]))
    (alone,) = drawn_batches(Configuration("plain", "family", model, 7), model(), targets=False).take(1)
    assert (alone.shape, alone.dtype) == ((7, 3), tf.float32)


def test_errors_are_summed_up_for_each_mode_and_phase():
    def row(mode: str, error: float) -> dict:
        return {"mode": mode, "phases": {"step": {"error": error}}}

    console = Console(width=120, record=True)
    console.print(modes._summaries([row("xla", 0.01), row("xla", -0.04), row("xla", 0.02), row("eager", 0.5)]))
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in console.export_text().splitlines()]
    assert ["xla", "step", "3", "2.0%", "4.0%", "4.0%"] in cells
    assert ["eager", "step", "1", "50.0%", "50.0%", "50.0%"] in cells


def test_a_model_with_a_training_step_of_its_own_is_trained_only():
    own = Configuration("own", "family", model, 4, targets=())
    assert "evaluate" not in measure_modes.phases_of(own)
    assert "evaluate" in measure_modes.phases_of(Configuration("plain", "family", model, 4))
