"""What eager functions would allocate and free, found without running them."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.eager import EagerRun, ScratchGraph, traced_eagerly
from tests.integration.processes import answer_of

KIB = 1024


def large(run: EagerRun) -> list[str]:
    """What happens to tensors of 1 KiB and more: `"+AddV2"` is made, `"-AddV2"` goes."""
    return [
        f"{'+' if made else '-'}{run.made[number].op}" for number, made in run.steps if run.made[number].bytes >= KIB
    ]


def peak(run: EagerRun) -> int:
    """The most bytes that are held at once."""
    level = highest = 0
    for number, made in run.steps:
        level += run.made[number].bytes if made else -run.made[number].bytes
        highest = max(highest, level)
    return highest


def test_zeros_are_one_tensor_that_stays():
    run = traced_eagerly(lambda: tf.fill((16, 32), 0.0))
    assert (run.shape, run.dtype) == ((16, 32), "float32")
    assert run.made[run.result].bytes == 16 * 32 * 4
    assert large(run) == ["+Fill"]


def test_glorot_holds_three_copies_at_its_peak():
    run = traced_eagerly(lambda: keras.initializers.GlorotUniform(seed=1)((64, 32), dtype="float32"))
    copy = 64 * 32 * 4
    # Uniform numbers, scaled, shifted; Python's `uniform * range + low` holds the first two while the third is made.
    assert large(run) == ["+StatelessRandomUniformV2", "+Mul", "+AddV2", "-StatelessRandomUniformV2", "-Mul"]
    assert 3 * copy <= peak(run) < 3 * copy + KIB
    assert run.made[run.result].op == "AddV2"


def test_what_is_dropped_goes_before_the_next_is_made():
    def function():
        tensor = tf.fill((1000,), 1.0)
        tensor = tensor * 2.0
        return tensor * 3.0

    # While a product is made, its input is still held.
    assert large(traced_eagerly(function)) == ["+Fill", "+Mul", "-Fill", "+Mul", "-Mul"]


def test_what_a_name_still_holds_stays_to_the_end_of_the_function():
    def function():
        first = tf.fill((1000,), 1.0)
        second = tf.fill((2000,), 1.0)
        del second
        return tf.fill((3000,), 1.0) + first[0]

    run = traced_eagerly(function)
    sizes = [(run.made[number].bytes, made) for number, made in run.steps if run.made[number].bytes >= KIB]
    assert sizes == [
        (4000, True),
        (8000, True),
        (8000, False),
        (12000, True),
        (12000, True),
        (4000, False),
        (12000, False),
    ]


def test_what_a_list_holds_stays():
    kept: list = []

    def function():
        kept.append(tf.fill((1000,), 1.0))
        return tf.fill((2000,), 1.0)

    assert large(traced_eagerly(function)) == ["+Fill", "+Fill"]


def test_an_op_that_was_asked_for_its_inputs_does_not_hold_them():
    def function():
        made = tf.zeros((2000,)) + 1.0
        assert len(made.op.inputs) == 2
        return tf.exp(made)

    run = traced_eagerly(function)
    freed = {number for number, is_made in run.steps if not is_made}
    assert freed == set(range(len(run.made))) - {run.result}


def test_another_shape_of_a_tensor_is_the_same_memory():
    def function():
        flat = tf.fill((1000,), 1.0)
        return tf.reshape(flat, (10, 100))

    run = traced_eagerly(function)
    assert large(run) == ["+Fill"]
    assert run.result is not None
    assert run.made[run.result].op == "Fill"
    assert run.shape == (10, 100)


def test_shared_memory_goes_with_its_last_holder():
    def function():
        flat = tf.fill((1000,), 1.0)
        square = tf.reshape(flat, (10, 100))
        del flat
        result = tf.fill((500,), 1.0)
        del square
        return result + 1.0

    assert large(traced_eagerly(function)) == ["+Fill", "+Fill", "-Fill", "+AddV2", "-Fill"]


def test_a_value_of_pythons_is_made_once_and_a_scalar_takes_no_memory_of_the_allocator():
    run = traced_eagerly(lambda: [3, 4])
    assert (run.shape, run.dtype) == ((2,), "int32")
    assert run.result is not None
    assert run.made[run.result].bytes == 8
    scalar = traced_eagerly(lambda: 3)
    assert (scalar.shape, scalar.dtype, scalar.result, scalar.steps) == ((), "int32", None, [])


def test_strings_hold_nothing():
    run = traced_eagerly(lambda: tf.constant(["a", "b"]))
    assert (run.shape, run.dtype, run.result, run.steps) == ((2,), "string", None, [])


def test_an_unknown_shape_is_refused():
    with pytest.raises(ValueError, match=r"makes a tensor of the unknown shape \(None,\)"):
        traced_eagerly(lambda: tf.unique(tf.constant([1, 1, 2]))[0])


def test_a_tape_of_the_callers_changes_nothing():
    def function():
        return keras.initializers.HeNormal(seed=1)((64, 32), dtype="float32")

    alone = traced_eagerly(function)
    with tf.GradientTape() as tape:
        tape.watch(tf.constant(1.0))
        assert traced_eagerly(function) == alone


MEASURED = """
    import json, sys
    import keras, tensorflow as tf
    from tensorboard_plugin_memest.estimation.allocator import BfcAllocator
    from tensorboard_plugin_memest.estimation.eager import traced_eagerly

    shape = (512, 384)
    results = {}
    for name in json.loads(sys.argv[1]):
        initializer = getattr(keras.initializers, name)()
        run = traced_eagerly(lambda: initializer(shape, dtype="float32"))
        estimated = BfcAllocator()
        addresses = {}
        for number, made in run.steps:
            if made:
                addresses[number], _ = estimated.allocate(run.made[number].bytes)
            else:
                estimated.free(addresses[number])
        tf.config.experimental.reset_memory_stats("CPU:0")
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
        value = initializer(shape, dtype="float32")
        measured = tf.config.experimental.get_memory_info("CPU:0")
        results[name] = [estimated.peak, measured["peak"] - before, estimated.in_use, measured["current"] - before]
        del value
    print(json.dumps(results))
"""

INITIALIZERS = [
    "Zeros",
    "Ones",
    "RandomUniform",
    "RandomNormal",
    "TruncatedNormal",
    "GlorotUniform",
    "GlorotNormal",
    "HeUniform",
    "HeNormal",
    "LecunUniform",
    "VarianceScaling",
    "Orthogonal",
]


def test_initializers_peak_as_in_tensorflow():
    results = answer_of(MEASURED, json.dumps(INITIALIZERS))
    assert set(results) == set(INITIALIZERS)
    for name, (estimated_peak, measured_peak, estimated, measured) in results.items():
        # Python's small numbers become tensors that eager TensorFlow caches: a few KiB beside copies of 768 KiB.
        assert abs(estimated_peak - measured_peak) <= 8 * KIB, (name, estimated_peak, measured_peak)
        assert abs(estimated - measured) <= 8 * KIB, (name, estimated, measured)


@pytest.mark.parametrize(("shape", "dtype"), [((), "int32"), ((3,), "float32")])
def test_what_a_small_variable_begins_with_is_known_if_nothing_random_is_in_it(shape, dtype):
    value = traced_eagerly(lambda: keras.initializers.Constant(9)(shape, dtype)).value
    assert np.array_equal(value, np.full(shape, 9, dtype))
    assert traced_eagerly(lambda: keras.initializers.RandomUniform(1, 2)(shape, "float32")).value is None
    assert traced_eagerly(lambda: keras.initializers.Constant(9)((100, 100), dtype)).value is None


def test_what_was_kept_for_the_gradient_of_a_tensor_that_is_gone_goes_too():
    graph = ScratchGraph()
    with graph.as_default():
        x = tf.zeros([300, 300])
        with tf.GradientTape() as tape:
            tape.watch(x)
            squared = tf.square(x)
            # Its gradient asks for the shape of what it is a part of.
            row = squared[0]
            del squared
            held = tf.exp(x)
            del row
            last = tf.sin(x)
            both = held + last
        assert tape.gradient(both, x) is not None
    happened = [(graph.run_so_far.made[number].op, is_made) for number, is_made in graph.run_so_far.steps]
    gone = happened.index(("Square", False))
    assert happened.index(("Exp", True)) < gone < happened.index(("AddV2", True))
