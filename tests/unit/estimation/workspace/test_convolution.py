"""Workspace of convolutions: columns as TensorFlow's kernels unfolded them when they were asked."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.estimation.workspace import convolution
from tests.unit.estimation.workspace.kernels import device, tensor, workspace

IMAGES, FILTERS, MADE = tensor(8, 32, 32, 16), tensor(3, 3, 16, 32), tensor(8, 32, 32, 32)
SIZES = [0, 0, 0, 0]


def test_the_columns_of_a_filters_gradient_fill_a_cache_whatever_the_batch():
    for batch in (1, 8, 512):
        images, made = tensor(batch, 32, 32, 16), tensor(batch, 32, 32, 32)
        found = workspace("Conv2DBackpropFilter", [images, SIZES, made], FILTERS)
        assert found.after == [4 * 43 * 1024 * 144]
        assert not found.before


def test_half_precision_unfolds_twice_as_many_images():
    halves = [tensor(*one.shape, dtype="bfloat16") for one in (IMAGES, MADE, FILTERS)]
    found = workspace("Conv2DBackpropFilter", [halves[0], SIZES, halves[1]], halves[2])
    assert found.after == [2 * 86 * 1024 * 144]


def test_the_inputs_gradient_unfolds_one_image_where_that_is_work_enough_for_every_thread():
    found = workspace("Conv2DBackpropInput", [SIZES, FILTERS, MADE], IMAGES)
    assert found.after == [4 * 1024 * 144]
    # 184,832 elements shared by four threads are fewer than the 65,536 each that fill a cache.
    found = workspace("Conv2DBackpropInput", [SIZES, FILTERS, MADE], IMAGES, on=device(threads=4))
    assert found.after == [4 * 43 * 1024 * 144]
    alone = workspace("Conv2DBackpropInput", [SIZES, FILTERS, tensor(1, 32, 32, 32)], tensor(1, 32, 32, 16))
    assert alone.after == [4 * 1024 * 144]


def test_a_stride_makes_fewer_columns():
    found = workspace("Conv2DBackpropFilter", [IMAGES, SIZES, tensor(8, 16, 16, 32)], FILTERS)
    assert found.after == [4 * 159 * 256 * 144]


def test_a_3d_gradient_does_without_columns_that_are_too_large(monkeypatch):
    monkeypatch.setattr(convolution, "l3_cache", lambda: 402_653_184)
    filters = tensor(3, 3, 3, 16, 16)
    images = made = tensor(4, 32, 32, 32, 16)
    for op, given, wanted in (
        ("Conv3DBackpropFilterV2", [images, SIZES, made], filters),
        ("Conv3DBackpropInputV2", [SIZES, filters, made], images),
    ):
        assert workspace(op, given, wanted).after == [396_361_728]
    small = tensor(2, 16, 16, 16, 8), tensor(3, 3, 3, 8, 16), tensor(2, 16, 16, 16, 16)
    assert not workspace("Conv3DBackpropInputV2", [SIZES, small[1], small[2]], small[0])
    # One image is unfolded alone.
    one = tensor(1, 16, 16, 16, 4), tensor(3, 3, 3, 4, 8), tensor(1, 16, 16, 16, 8)
    assert workspace("Conv3DBackpropInputV2", [SIZES, one[1], one[2]], one[0]).after == [4 * 4096 * 108]


def test_eigen_finds_the_cache():
    assert convolution.l3_cache() >= 2**20


@pytest.mark.parametrize("op", ["Conv2DBackpropFilter", "Conv2DBackpropInput"])
def test_onednn_unfolds_nothing_where_it_knows_the_type(op):
    of_filter = op == "Conv2DBackpropFilter"
    for dtype, needs in (("float32", False), ("bfloat16", False), ("float16", True), ("float64", True)):
        images, filters, made = (tensor(*one.shape, dtype=dtype) for one in (IMAGES, FILTERS, MADE))
        given, wanted = ([images, SIZES, made], filters) if of_filter else ([SIZES, filters, made], images)
        assert bool(workspace(op, given, wanted, on=device(onednn=True))) == needs, dtype


def test_a_convolution_itself_needs_a_little_with_onednn_only():
    assert not workspace("Conv2D", [IMAGES, FILTERS], MADE)
    assert workspace("_FusedConv2D", [IMAGES, FILTERS], MADE, on=device(onednn=True)).after == [12_336]
    assert workspace("Conv2D", [IMAGES, FILTERS], MADE, on=device(threads=1, onednn=True)).after == [8_216]


def test_depthwise_convolutions_keep_a_gradient_for_each_image():
    filters = tensor(3, 3, 16, 1)
    assert workspace("DepthwiseConv2dNative", [IMAGES, filters], IMAGES).after == [576]
    assert workspace("DepthwiseConv2dNativeBackpropInput", [SIZES, filters, IMAGES], IMAGES).after == [576, 64]
    assert workspace("DepthwiseConv2dNativeBackpropFilter", [IMAGES, SIZES, IMAGES], filters).after == [4608, 576]
