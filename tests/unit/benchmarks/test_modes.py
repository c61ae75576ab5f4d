"""The benchmark of all modes and phases."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from rich.console import Console

from benchmarks import measure_modes, modes
from benchmarks.configuration import Configuration


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


def test_data_that_is_fed_is_counted_and_kept():
    fed = measure_modes.Fed()
    dataset = fed.dataset((tf.zeros((4, 3)), tf.zeros((4, 1), tf.int64)))
    assert fed._bytes == 4 * 3 * 4 + 4 * 8
    assert fed._kept == [dataset]


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
