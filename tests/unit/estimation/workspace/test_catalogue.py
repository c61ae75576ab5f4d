"""Workspace of kernels that are no convolutions; `tests/integration/test_workspace_measured.py` asks them all."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.estimation.workspace.catalogue import workspace_notes
from tests.unit.estimation.workspace.kernels import device, tensor, workspace

IMAGES = tensor(8, 32, 32, 16)


def test_halves_are_multiplied_as_floats():
    a, b, made = (tensor(*shape, dtype="bfloat16") for shape in ((300, 400), (400, 500), (300, 500)))
    assert workspace("MatMul", [a, b], made).after == [480_000, 800_000, 600_000]
    assert workspace("_FusedMatMul", [a, b, tensor(500, dtype="bfloat16")], made).after == [480_000, 800_000, 600_000]
    assert not workspace("MatMul", [a, b], made, on=device(onednn=True))
    assert not workspace("MatMul", [tensor(300, 400), tensor(400, 500)], tensor(300, 500))


def test_what_is_multiplied_in_another_type_is_converted_first():
    # As a profile of a quantized layer has it.
    a, b = tensor(256, 1024, dtype="int8"), tensor(1024, 1024, dtype="int8")
    made = tensor(256, 1024, dtype="int32")
    assert workspace("BatchMatMulV3", [a, b], made).after == [1_048_576, 4_194_304]
    assert not workspace("BatchMatMulV3", [made, tensor(1024, 1024, dtype="int32")], made)


@pytest.mark.parametrize(
    ("equation", "shapes", "made", "copies"),
    [
        ("abc,cde->abde", [(8, 48, 128), (128, 4, 32)], (8, 48, 4, 32), []),
        ("aecd,abcd->acbe", [(8, 48, 4, 32)] * 2, (8, 4, 48, 48), [196_608, 196_608, 294_912]),
        ("ij,jk->ki", [(100, 200), (200, 300)], (300, 100), [120_000]),
        ("bij->bji", [(8, 100, 100)], (8, 100, 100), []),
        ("ij->j", [(100, 200)], (200,), [80_000]),
        ("bij,jk->bk", [(4, 20, 32), (32, 16)], (4, 16), [10_240, 512]),
        ("...ij,...jk->...ik", [(2, 3, 40, 50), (3, 50, 60)], (2, 3, 40, 60), []),
        ("...ij,...jk->...ki", [(2, 3, 40, 50), (3, 50, 60)], (2, 3, 60, 40), [57_600]),
    ],
)
def test_einsum_copies_what_is_in_another_order_than_a_product_needs(equation, shapes, made, copies):
    found = workspace("Einsum", [tensor(*shape) for shape in shapes], tensor(*made), equation=equation)
    assert found.before == copies
    assert not found.after


def test_an_equation_that_does_not_fit_its_inputs_needs_nothing():
    assert not workspace("Einsum", [tensor(2, 3)], tensor(3, 2), equation="ij,jk->ik")


@pytest.mark.parametrize(("axes", "copied"), [([0, 2], True), ([1, 3], True), ([0, 2, 3], False), ([1, -2], False)])
def test_reductions_copy_where_reduced_and_kept_dimensions_alternate(axes, copied):
    found = workspace("Mean", [IMAGES, axes], tensor(1))
    assert list(found.after) == ([IMAGES.bytes] if copied else [])


def test_dimensions_of_size_one_do_not_count():
    assert not workspace("Sum", [tensor(4, 1, 6, 7), [0, 2]], tensor(7))


def test_what_is_not_a_constant_is_not_known():
    assert not workspace("Sum", [IMAGES, tensor(2, dtype="int32")], tensor(1))


def test_batch_normalization_in_half_precision_has_a_gradient_in_full():
    scale = tensor(16)
    for dtype, wide in (("float32", []), ("float16", [4 * 8 * 32 * 32 * 16])):
        images = tensor(8, 32, 32, 16, dtype=dtype)
        given = [images, images, scale, scale, scale, scale]
        assert workspace("FusedBatchNormGradV3", given, images, is_training=True).after == [64, *wide]
        assert workspace("FusedBatchNormGradV3", given, images, is_training=False).after == [64, 64, *wide]
    floats = [IMAGES, IMAGES, scale, scale, scale, scale]
    assert not workspace("FusedBatchNormGradV3", floats, IMAGES, is_training=True, on=device(onednn=True))


def test_gradients_that_xla_computes_together_have_the_results_once_more():
    filters, made = tensor(3, 3, 4, 32), tensor(8, 32, 32, 32)
    of_input = workspace("Conv2DBackpropInput", [[8, 32, 32, 16], filters, made], IMAGES, by_xla=True)
    of_filter = workspace("Conv2DBackpropFilter", [IMAGES, [3, 3, 4, 32], made], filters, by_xla=True)
    assert of_input.after == of_filter.after == [made.bytes + filters.bytes]
    assert not workspace("Conv2D", [IMAGES, filters], made, by_xla=True)


def test_the_gradient_of_a_maximum_has_it_and_its_place_before_its_output():
    pooled = tensor(8, 16, 16, 16)
    found = workspace("MaxPoolGrad", [IMAGES, pooled, pooled], IMAGES)
    assert (found.before, found.after, found.taken_over, found.becomes) == ([131_072, 262_144], (), 1, 0)
    kept = tensor(8 * 16 * 16 * 16, dtype="uint8")
    assert not workspace("MaxPoolGrad", [IMAGES, pooled, pooled, kept], IMAGES)


def test_where_a_maximum_lay_is_made_beside_it_by_onednn_and_in_a_graph_an_output():
    pooled, places, sizes = tensor(8, 16, 16, 16), tensor(8 * 16 * 16 * 16, dtype="uint8"), [1, 2, 2, 1]
    for outputs, onednn, expected in (([pooled], True, [32_768]), ([pooled, places], True, []), ([pooled], False, [])):
        found = workspace("MaxPool", [IMAGES], *outputs, on=device(onednn=onednn), ksize=sizes, strides=sizes)
        assert list(found.after) == expected


def test_cross_entropy_keeps_one_number_an_example():
    logits = tensor(256, 1000)
    assert workspace("SoftmaxCrossEntropyWithLogits", [logits, logits], tensor(256), logits).before == [1024]


def test_what_is_assumed_is_said():
    [cpu] = workspace_notes(device(threads=1, onednn=True))
    assert "oneDNN" in cpu
    assert "1 intra-op thread," in cpu
    [own] = workspace_notes(device(threads=8))
    assert "TF_ENABLE_ONEDNN_OPTS=0" in own
    assert "8 intra-op threads" in own


def test_a_gpus_limit_is_told(monkeypatch):
    monkeypatch.delenv("TF_CUDNN_WORKSPACE_LIMIT_IN_MB", raising=False)
    limit, capability = workspace_notes(device("GPU"))
    assert "8192 MiB" in limit
    assert "8.0" in capability
    monkeypatch.setenv("TF_CUDNN_WORKSPACE_LIMIT_IN_MB", "512")
    assert "512 MiB" in workspace_notes(device("GPU"))[0]
