"""Small tensors on the host, against what the allocator of real processes held."""

from __future__ import annotations

import tensorflow as tf

from tensorboard_plugin_memest.estimation.births import Birth
from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.eager import EagerRun, Made
from tensorboard_plugin_memest.estimation.phases import Run, phases_of
from tensorboard_plugin_memest.estimation.small import kept_by_trace
from tensorboard_plugin_memest.estimation.variables import Variable
from tests.unit.estimation.graphs import graph, node, program, variable


def test_values_that_shapes_depend_on_are_kept_once_each_and_others_are_not():
    with tf.Graph().as_default() as traced:
        x = tf.compat.v1.placeholder(tf.float32, (4, 6))
        shape = tf.constant([24])
        y = tf.reshape(x, shape) + tf.reduce_sum(tf.reshape(x * 2.0, shape), axis=tf.constant([0]))
        tf.cast(tf.constant(3), tf.float32) + tf.gather(y, tf.constant([1, 2]), axis=tf.constant(0))
    # The shape, of two readers; what is summed over; along what is gathered.
    assert kept_by_trace(traced.as_graph_def()) == 3


def test_values_of_more_than_64_bytes_are_not_kept():
    with tf.Graph().as_default() as traced:
        x = tf.compat.v1.placeholder(tf.float32, (2,) * 8)
        tf.reshape(x, tf.constant([1] * 8 + [2] * 8))
        tf.reshape(x, tf.constant([1] * 9 + [2] * 8))
    assert kept_by_trace(traced.as_graph_def()) == 1


def _run(slots: int, kept: int) -> Run:
    made = graph(node("x", "Placeholder", (), 700), node("y", "MatMul", ["x"], 700))
    births = [_birth(variable(f"slot{number}", 64)) for number in range(slots)]
    return Run(None, births, [_birth(variable("w", 300))], program(made), ["forward"] * 2, kept_by_trace=kept)


def _birth(one: Variable) -> Birth:
    return Birth(one, EagerRun([(0, True)], [Made("Fill", one.shape, one.dtype, one.bytes)], 0, one.shape, one.dtype))


def _peak(device: str, slots: int, kept: int) -> int:
    phases, _ = phases_of(_run(slots, kept), Device(device, "growth", None, 1))
    return phases["step"].peak_bytes


def test_on_a_cpu_every_variable_has_a_handle_in_the_pool_and_a_function_with_slots_is_traced_twice():
    assert _peak("CPU", 0, 0) - _peak("GPU", 0, 0) == 256
    assert _peak("CPU", 3, 0) - _peak("GPU", 3, 0) == 4 * 256
    assert _peak("CPU", 0, 10) - _peak("GPU", 0, 10) == 11 * 256
    assert _peak("CPU", 3, 10) - _peak("GPU", 3, 10) == 24 * 256
