"""Copies for cuDNN, worked by hand from TensorFlow's sources."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.workspace.cudnn import channels_first
from tests.unit.estimation.workspace.kernels import device, tensor, workspace

GPU = device("GPU")
OLD = replace(GPU, capability=(6, 1))
IMAGES, FILTERS, MADE = tensor(2, 10, 10, 4), tensor(3, 3, 4, 8), tensor(2, 10, 10, 8)
SIZES = [0, 0, 0, 0]
SAME = {"padding": "SAME", "strides": [1, 1, 1, 1], "data_format": "NHWC"}
HALVED = {**SAME, "strides": [1, 2, 2, 1]}


@pytest.mark.parametrize(
    ("dtype", "capability", "first"),
    [
        ("float16", (6, 1), True), ("float16", (7, 0), False), ("bfloat16", (7, 5), True), ("bfloat16", (8, 0), False),
        ("float32", (7, 5), True), ("float32", (8, 6), False), ("float64", (9, 0), True), ("float32", None, False),
    ],
)  # fmt: skip
def test_channels_come_first_where_tensor_cores_do_not_help(dtype, capability, first):
    assert channels_first(dtype, replace(GPU, capability=capability)) == first


def test_without_tf32_floats_are_turned():
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        assert channels_first("float32", GPU)
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)


def test_a_convolution_copies_its_filter_and_on_older_gpus_all():
    assert workspace("Conv2D", [IMAGES, FILTERS], MADE, on=GPU, **SAME).after == [FILTERS.bytes]
    found = workspace("Conv2D", [IMAGES, FILTERS], MADE, on=OLD, **SAME)
    assert found.after == [FILTERS.bytes, IMAGES.bytes, MADE.bytes]


def test_padding_on_one_side_only_makes_a_padded_copy():
    made = tensor(2, 5, 5, 8)
    assert workspace("Conv2D", [IMAGES, FILTERS], made, on=GPU, **HALVED).after == [FILTERS.bytes, 4 * 2 * 11 * 11 * 4]


def test_the_inputs_gradient_is_made_apart():
    found = workspace("Conv2DBackpropInput", [SIZES, FILTERS, MADE], IMAGES, on=GPU, **SAME)
    assert found.after == [FILTERS.bytes, IMAGES.bytes]


def test_the_filters_gradient_is_made_in_cudnns_order():
    found = workspace("Conv2DBackpropFilter", [IMAGES, SIZES, MADE], FILTERS, on=GPU, **SAME)
    assert found.after == [FILTERS.bytes]


def test_windows_of_one_pixel_are_a_product_of_matrices():
    assert not workspace("Conv2D", [IMAGES, tensor(1, 1, 4, 8)], MADE, on=OLD, **SAME)
    whole = {**SAME, "padding": "VALID"}
    assert not workspace("Conv2D", [IMAGES, tensor(10, 10, 4, 8)], tensor(2, 1, 1, 8), on=OLD, **whole)
    assert workspace("Conv2D", [IMAGES, tensor(1, 1, 4, 8)], tensor(2, 5, 5, 8), on=GPU, **HALVED)


def test_channels_that_are_first_already_are_not_turned():
    images, made = tensor(2, 4, 10, 10), tensor(2, 8, 10, 10)
    given = {**SAME, "data_format": "NCHW"}
    assert workspace("Conv2D", [images, FILTERS], made, on=OLD, **given).after == [FILTERS.bytes]
