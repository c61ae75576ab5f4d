"""Other choices: each is what an estimate with it says."""

from __future__ import annotations

import keras
import pytest

from tensorboard_plugin_memest.advise import what_if as made_by
from tensorboard_plugin_memest.advise.optimizers import OPTIMIZERS
from tensorboard_plugin_memest.estimation import model as estimation
from tensorboard_plugin_memest.memory.what_if import Choices, WhatIf

L = keras.layers


def build() -> keras.Model:
    model = keras.Sequential([keras.Input((12, 12, 2)), L.Conv2D(8, 3), L.Flatten(), L.Dense(3)])
    model.compile("adam", "mse", jit_compile=False)
    return model


def estimate(**options):
    """For a GPU, whose one order is played quickly, and with XLA approximated instead of asked."""
    return estimation.estimate(
        build, **{"batch_size": 8, "device": "GPU", "compile_timeout": 0, "jit_compile": False, **options}
    )


@pytest.fixture(scope="module")
def what_if() -> WhatIf:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made_by, "OPTIMIZERS", OPTIMIZERS[:1])
        patch.setattr(made_by, "SIZES", 3)
        return estimate().what_if(seconds=None)


def test_there_is_every_combination_and_the_first_is_as_it_is(what_if):
    assert what_if.base == Choices(8, "Adam", "float32", "graph") == what_if.outcomes[0].choices
    assert what_if.batch_sizes == (2, 4, 8)
    assert what_if.optimizers == ("Adam", "SGD")
    assert what_if.precisions == ("float32", "mixed_float16", "mixed_bfloat16")
    assert what_if.modes == ("graph", "xla")
    assert len({outcome.choices for outcome in what_if.outcomes}) == len(what_if.outcomes) == 3 * 2 * 3 * 2
    assert what_if.notes == ()


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, {}),
        ({"batch_size": 4}, {"batch_size": 4}),
        ({"optimizer": "SGD", "batch_size": 2}, {"optimizer": lambda: keras.optimizers.SGD(0.01), "batch_size": 2}),
        ({"mode": "xla", "batch_size": 4}, {"jit_compile": True, "batch_size": 4}),
    ],
)
def test_each_is_what_an_estimate_with_it_says(what_if, changes, options):
    made = {name: value() if name == "optimizer" else value for name, value in options.items()}
    outcome, by_hand = what_if(**changes), estimate(**made)
    assert outcome.peak_bytes == by_hand.peak_bytes
    assert outcome.categories == by_hand.peak_phase.categories
    assert outcome.fits(by_hand.peak_bytes - 1).outcome == "does not fit"
    assert {name: peak for name, (peak, _) in outcome.phases.items()} == {
        name: phase.peak_bytes for name, phase in by_hand.phases.items()
    }


def test_precisions_are_those_of_keras(what_if):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        assert what_if(precision="mixed_float16").peak_bytes == estimate().peak_bytes
    finally:
        keras.config.set_dtype_policy("float32")


def test_when_the_time_is_up_it_says_what_was_left_out():
    found = estimate().what_if(seconds=0)
    assert [outcome.choices.optimizer for outcome in found.outcomes] == ["Adam"] * 5
    assert found.notes == ("145 of 150 combinations were left out, after 0 seconds.",)


@pytest.mark.parametrize(
    ("size", "around"), [(1, [1, 2, 4, 8, 16]), (6, [3, 6, 12, 24, 48]), (32, [8, 16, 32, 64, 128])]
)
def test_sizes(size, around):
    assert made_by.sizes_around(size) == around
