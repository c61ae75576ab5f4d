"""What callbacks that save and log take of the host's memory."""

from __future__ import annotations

import keras
import pytest

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers
KERNEL, BIAS = 100 * 50 * 4, 50 * 4
# Iterations are an int64, the learning rate a float32.
OPTIMIZER = 2 * (KERNEL + BIAS) + 8 + 4


def build() -> keras.Model:
    model = keras.Sequential([keras.Input((100,)), L.Dense(50, name="wide")], name="model")
    model.compile("adam", "mse", jit_compile=False)
    return model


@pytest.mark.parametrize(
    ("callback", "expected", "words"),
    [
        (keras.callbacks.ModelCheckpoint("a.keras"), KERNEL + BIAS + OPTIMIZER + 2 * KERNEL, "Saving 'a.keras'"),
        (keras.callbacks.ModelCheckpoint("a.weights.h5", save_weights_only=True), 2 * KERNEL, "largest weight"),
        (keras.callbacks.BackupAndRestore("backup"), 2 * KERNEL, "backup.weights.h5"),
        (
            keras.callbacks.TensorBoard("logs", histogram_freq=1),
            240 * 100 * 50,
            "for wide/kernel, [5000, 30]",
        ),
    ],
)
def test_each_way_to_save_is_counted_on_the_host_and_the_variables_on_the_device(callback, expected, words):
    made = estimate(build, batch_size=4, callbacks=[callback, keras.callbacks.EarlyStopping()])
    phase = made.phases["checkpoint"]
    assert phase.host_peak_bytes == expected
    assert phase.peak_bytes == made.resident_bytes == sum(item.bytes for item in phase.live_at_peak)
    assert words in "\n".join(made.assumptions)
    assert Estimate.from_json(made.to_json()) == made
    assert made.at_batch_size(8).phases["checkpoint"].host_peak_bytes == expected


def test_callbacks_that_save_nothing_add_nothing_and_others_are_refused():
    quiet = [keras.callbacks.EarlyStopping(), keras.callbacks.TensorBoard("logs")]
    assert "checkpoint" not in estimate(build, batch_size=4, callbacks=quiet).phases
    assert all(phase.host_peak_bytes == 0 for phase in estimate(build, batch_size=4).phases.values())
    with pytest.raises(UsageError, match=r"callbacks= takes the Keras callbacks .* not .a\.keras"):
        estimate(build, batch_size=4, callbacks="a.keras")
