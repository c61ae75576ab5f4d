"""Rehearsals: real trainings in processes of their own, under the allocator that serves GPUs."""

from __future__ import annotations

import keras
import pytest

import memest
from tensorboard_plugin_memest.memory.category import Category

UNITS = 1500


class Scaled(keras.layers.Layer):
    """A layer of this module, which no other process can import, and which nobody registered for saving."""

    def call(self, inputs):
        return inputs * 0.5


def make(units: int) -> keras.Model:
    layers = [keras.layers.Dense(units, activation="relu"), Scaled(), keras.layers.Dense(1, name="out")]
    model = keras.Sequential([keras.Input((1000,)), *layers])
    model.compile("adam", "mse", jit_compile=False)
    return model


def test_a_training_that_fits_is_measured_phase_by_phase_beside_its_estimate():
    model = make(UNITS)
    before = [weight.numpy() for weight in model.weights]
    played = memest.rehearse(model, batch_size=16, steps=2, memory_limit="200MiB")
    assert played
    assert (played.completed, played.explanation, played.limit_bytes) == (True, None, 200 * 2**20)
    assert list(played.phases) == ["build", "first_step", "step"]
    assert [phase.steps for phase in played.phases.values()] == [0, 1, 1]
    kernel = 1000 * UNITS * 4
    # A Glorot initializer's three copies; weight, two slots, gradient and a temporary.
    assert 3 * kernel <= played.phases["build"].peak_bytes < 4 * kernel
    # A copy of the kernel more or less, which the order of several threads decides, is a fifth of it all.
    for name in ("build", "first_step", "step"):
        assert played.phases[name].peak_bytes == pytest.approx(played.estimate.phases[name].peak_bytes, rel=0.25)
    assert played.phases["step"].current_bytes >= 3 * kernel
    assert played.peak_bytes == max(phase.peak_bytes for phase in played.phases.values())
    # The profile saw every allocation that the allocator counted.
    assert played.timeline.peak_bytes == played.peak_bytes
    assert [span.name for span in played.timeline.spans] == ["build", "step 0", "step 1"]
    assert "The rehearsal completed 2 steps within 200.0 MiB" in str(played)
    # This process's model was not touched.
    assert not model.optimizer.built
    assert all((weight.numpy() == old).all() for weight, old in zip(model.weights, before, strict=True))


def test_a_training_that_does_not_fit_dies_as_on_a_gpu_and_is_explained():
    units = UNITS
    played = memest.rehearse(lambda: make(units), batch_size=16, memory_limit="26MiB", optimizer="rmsprop")
    assert not played
    assert played.phases["build"].completed
    died = played.phases["first_step"]
    assert not died.completed
    assert died.peak_bytes <= 26 * 2**20
    assert "step" not in played.phases
    why = played.explanation
    assert (why.phase, why.step, why.limit_bytes) == ("first_step", 0, 26 * 2**20)
    assert (why.shape, why.dtype, why.bytes) == ((1000, units), "float32", 1000 * units * 4)
    assert why.layer == "dense"
    assert why.in_use_bytes == died.peak_bytes
    assert not why.live_is_predicted
    assert sum(item.variable == "dense/kernel" for item in why.live) + 1 >= 4
    (weight,) = [item for item in why.live if item.role == "weight" and item.shape == (1000, units)]
    assert weight.category is Category.WEIGHTS
    assert "more than the limit of 26.0 MiB" in why.expectation
    assert played.timeline.spans[-1].name == "step 0"


def test_a_kernel_that_ends_the_process_when_it_is_refused_memory_is_explained_too():
    """OneDNN's does, with a signal; where a CPU has it not, TensorFlow raises its error."""

    def build() -> keras.Model:
        wide = keras.layers.Dense(4096, activation="relu", kernel_initializer="zeros")
        model = keras.Sequential([keras.Input((16,)), wide, keras.layers.Dense(1)])
        model.compile("sgd", "mse", jit_compile=False)
        return model

    played = memest.rehearse(build, batch_size=8192, memory_limit="100MiB")
    assert not played
    why = played.explanation
    assert (why.phase, why.shape, why.bytes) == ("first_step", (8192, 4096), 2**27)
    assert (why.layer, why.limit_bytes) == ("dense", 100 * 2**20)
    assert "The rehearsal died in the first step within 100.0 MiB." in str(played)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"steps": 0}, "not 0"),
        ({"steps": 2.0}, r"not 2\.0"),
        ({"memory_limit": "9.29"}, r"'9\.29' is not a memory size"),
        ({"memory_limit": "1KiB"}, "less than 1 MiB"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(arguments, told):
    with pytest.raises(ValueError, match=told):
        memest.rehearse(lambda: make(1), batch_size=1, **arguments)


def test_unknown_arguments_and_no_models_are_refused():
    with pytest.raises(TypeError, match="optimiser"):
        memest.rehearse(lambda: make(1), batch_size=1, optimiser="sgd")
    with pytest.raises(TypeError, match=r"must be a keras\.Model"):
        memest.rehearse(keras.layers.Dense(1), batch_size=1)


def test_what_cannot_be_handed_over_is_refused():
    import threading

    lock = threading.Lock()

    def build() -> keras.Model:
        with lock:
            return make(1)

    with pytest.raises(ValueError, match="cannot be handed to the process that rehearses"):
        memest.rehearse(build, batch_size=1)
