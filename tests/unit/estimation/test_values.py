"""What Python gets when it asks symbolic tensors of a followed step for their values."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.eager import ScratchGraph
from tensorboard_plugin_memest.estimation.unrolled import MOST_ITERATIONS
from tensorboard_plugin_memest.estimation.values import values_known


def asked(function):
    """What `function` returns for a tensor [2, 3] of unknown values, and what was assumed."""
    with ScratchGraph().as_default(), values_known() as notes:
        return function(tf.compat.v1.placeholder(tf.float32, (2, 3))), notes


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: int(tf.shape(x)[1]), 3),
        (lambda x: [int(number) for number in tf.range(3)], [0, 1, 2]),
        (lambda x: (tf.constant(3) * 1).numpy() if tf.rank(x) == 2 else 0, 3),
        (lambda x: np.asarray(tf.constant([4.0, 5.0])).tolist(), [4.0, 5.0]),
        (lambda x: f"{tf.constant(1.25):.1f} {tf.constant(7)}", "1.2 7"),
        (lambda x: (len(x), [tuple(row.shape) for row in x]), (2, [(3,), (3,)])),
    ],
)
def test_what_follows_from_constants_and_shapes_is_known(function, expected):
    assert asked(function) == (expected, [])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: float(tf.reduce_sum(x)), 1.0),
        (lambda x: bool(tf.reduce_any(x > 0)), True),
        (lambda x: bool(tf.reduce_max(x) < 0) or bool(tf.reduce_any(tf.math.is_nan(x))), False),
        (lambda x: bool(~tf.reduce_all(tf.math.is_finite(x)) | (x[0, 0] >= tf.constant(2.0))), False),
        (lambda x: (x > [[0.5, 1.5, 0.0]]).numpy().tolist(), [[True, False, True]] * 2),
        (lambda x: x.numpy().tolist(), [[1.0] * 3] * 2),
        (lambda x: list(range(5))[tf.cast(x[0, 0], tf.int32)], 1),
    ],
)
def test_what_only_a_run_knows_is_taken_for_ones_and_told(function, expected):
    value, notes = asked(function)
    assert value == expected
    assert notes
    assert all("were taken for ones" in note for note in notes)


def test_a_loop_that_only_the_run_ends_ends():
    def loop(x):
        rounds = 0
        while tf.reduce_sum(x) > 0:
            rounds += 1
        return rounds

    # Python compiles the condition twice, for the first time and the others.
    assert MOST_ITERATIONS <= asked(loop)[0] <= 2 * MOST_ITERATIONS


def test_other_symbolic_tensors_and_later_ones_do_as_ever():
    def refuses(x):
        assert not hasattr(x, "numpy")
        for ask in (bool, int, float, list, len, np.asarray):
            with pytest.raises((TypeError, NotImplementedError)):
                ask(x)

    with values_known(), tf.Graph().as_default():
        refuses(tf.compat.v1.placeholder(tf.float32, (1,)))
    with ScratchGraph().as_default():
        refuses(tf.compat.v1.placeholder(tf.float32, (1,)))
