"""Where the output of an op comes from."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.estimation.graph import Node, Output
from tensorboard_plugin_memest.estimation.rules import OWN, Source, can_take_over, source_of


def output(*shape: int, dtype: str = "float32") -> Output:
    size = {"float32": 4, "float16": 2, "int64": 8}[dtype]
    for extent in shape:
        size *= extent
    return Output(shape, dtype, size)


def source(op: str, made: Output, *given: Output, number: int = 0, deciding: list[int] | None = None) -> Source:
    outputs = [output(1)] * number + [made]
    return source_of(Node("n", op, [(0, 0)] * len(given), [], outputs, {}), number, list(given), deciding)


@pytest.mark.parametrize("op", ["Identity", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "Bitcast"])
def test_ops_that_only_rename_share_their_inputs_memory(op):
    assert source(op, output(2, 3), output(6)).alias_of == 0


def test_a_sum_that_grappler_made_a_variable_of_the_step_is_one_tensor():
    for op in ("Assign", "AssignAdd"):
        assert source(op, output(2, 3), output(2, 3), output(2, 3)) == Source(alias_of=0)
    assert source("DestroyTemporaryVariable", output(2, 3), output(2, 3)) == Source(alias_of=0)
    assert source("TemporaryVariable", output(2, 3)) == OWN


def test_identity_n_shares_input_by_input():
    assert source("IdentityN", output(5), output(4), output(5), number=1).alias_of == 1


@pytest.mark.parametrize("op", ["Cast", "Tile", "BroadcastTo", "Pad", "Sum", "Mean"])
def test_ops_with_nothing_to_do_pass_their_input_on(op):
    assert source(op, output(2, 3), output(2, 3)).alias_of == 0


@pytest.mark.parametrize(
    ("op", "made", "given"),
    [
        ("Cast", output(4, dtype="float16"), output(4)),
        ("Tile", output(8), output(4)),
        ("Sum", output(), output(4)),
        ("Pad", output(6), output(4)),
    ],
)
def test_the_same_ops_make_a_tensor_where_there_is_something_to_do(op, made, given):
    assert source(op, made, given).alias_of is None


@pytest.mark.parametrize(
    ("made", "given", "axes", "alias_of"),
    [
        (output(2, 3), output(2, 3), [0, 1], 0),
        # Only ones move.
        (output(1, 5, 7), output(5, 1, 7), [1, 0, 2], 0),
        (output(1, 7, 5), output(5, 1, 7), [1, 2, 0], None),
        # As many bytes, but in another order, which shapes need not show.
        (output(3, 2), output(2, 3), [1, 0], None),
        (output(4, 64, 64), output(4, 64, 64), [0, 2, 1], None),
        # Not known before the run.
        (output(4, 64, 64), output(4, 64, 64), None, None),
    ],
)
def test_a_transpose_that_only_moves_ones_has_nothing_to_do(made, given, axes, alias_of):
    assert source("Transpose", made, given, output(len(given.shape)), deciding=axes).alias_of == alias_of


@pytest.mark.parametrize(
    ("made", "steps", "alias_of"),
    [
        (output(8, 1, 32), [1, 1], 0),  # x[:, None]
        (output(8, 32, 1), [1, 1], 0),
        (output(8, 32, 1), [-1, 1], None),  # x[::-1, ..., None]
        (output(8, 32, 1), None, None),
    ],
)
def test_a_slice_that_only_adds_dimensions_has_nothing_to_do(made, steps, alias_of):
    positions = output(2, dtype="int64")
    assert source("StridedSlice", made, output(8, 32), *[positions] * 3, deciding=steps).alias_of == alias_of


@pytest.mark.parametrize("op", ["Relu", "Tanh", "Square", "Softmax", "BiasAdd", "MatrixBandPart"])
def test_elementwise_ops_may_take_over_their_input(op):
    assert source(op, output(4), output(4)) == Source(reuses=(0,))


@pytest.mark.parametrize("op", ["AddV2", "Mul", "Sub", "ReluGrad", "TanhGrad", "Maximum"])
def test_binary_ops_may_take_over_either(op):
    assert source(op, output(4), output(4), output(4)) == Source(reuses=(0, 1))


def test_a_selection_may_take_over_what_it_selects_from():
    assert source("SelectV2", output(4), output(4), output(4), output(4)).reuses == (1, 2)


def test_a_sum_of_many_may_take_over_any():
    assert source("AddN", output(4), output(4), output(4), output(4)).reuses == (0, 1, 2)


def test_the_gradient_of_a_cross_entropy_may_take_over_the_logits():
    made, given = output(8, 10), (output(8, 10), output(8, 10))
    assert source("SoftmaxCrossEntropyWithLogits", made, *given, number=1).reuses == (0,)
    assert source("SoftmaxCrossEntropyWithLogits", output(8), *given) == OWN


@pytest.mark.parametrize(
    "op", ["MatMul", "Conv2D", "ConcatV2", "GatherV2", "StatelessRandomUniformV2", "FusedBatchNormV3"]
)
def test_other_ops_make_what_they_return(op):
    assert source(op, output(4), output(4), output(4)) == OWN


def test_only_a_buffer_of_the_same_type_and_size_can_be_taken_over():
    assert can_take_over(output(2, 3), output(6))
    assert not can_take_over(output(6), output(5))
    assert not can_take_over(output(8, dtype="float16"), output(4)), "as many bytes, but another type"
    assert not can_take_over(output(6), Output(None, "float32", 24))
