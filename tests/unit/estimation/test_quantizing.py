"""Models that are quantized while they are built."""

from __future__ import annotations

import math

import keras
import pytest
import tensorflow as tf

import memest
from tensorboard_plugin_memest.estimation.allocator import ROUNDING

WIDTH = 512


def _quantized(mode: str) -> keras.Model:
    tokens = keras.Input((12,), dtype="int32")
    x = keras.layers.Embedding(700, WIDTH, name="words")(tokens)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dense(WIDTH, name="hidden")(x)
    model = keras.Model(tokens, keras.layers.Dense(5, name="last")(x))
    model.quantize(mode)
    return model


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_a_function_that_quantizes_gives_the_weights_that_a_run_has(mode):
    made = memest.estimate(lambda: _quantized(mode), batch_size=None, predict_batch_size=4, device="CPU")
    model = _quantized(mode)
    sizes = [math.prod(one.shape) * tf.as_dtype(one.dtype).size for one in model.variables]
    resident = sum(ROUNDING * math.ceil(size / ROUNDING) for size in sizes)
    assert made.resident_bytes == resident
    assert sorted(item.dtype for item in made.items if item.category.name == "WEIGHTS") == sorted(
        keras.backend.standardize_dtype(one.dtype) for one in model.weights
    )
    assert memest.estimate(model, batch_size=None, predict_batch_size=4, device="CPU").resident_bytes == resident


def test_building_holds_weights_as_they_were_until_they_are_quantized():
    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((WIDTH,)), *(keras.layers.Dense(WIDTH) for _ in range(3))])
        model.quantize("int8")
        return model

    kernel = 4 * WIDTH * WIDTH
    built = memest.estimate(build, batch_size=None, predict_batch_size=4, device="CPU").phases["build"]
    # Two kernels, and three tensors that the third's first value is made of; the quantized ones are smaller.
    assert 5 * kernel <= built.requested_peak_bytes < 5.1 * kernel
