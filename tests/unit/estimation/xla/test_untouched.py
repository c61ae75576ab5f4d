"""Tensors without memory, which serve as the values of variables while a step is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

from tensorboard_plugin_memest.estimation.xla.untouched import UntouchedTensors


def resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int64", "uint32", "complex64", "float8_e5m2"])
def test_a_tensor_is_of_the_wanted_shape_and_type(dtype):
    values = UntouchedTensors("CPU", 2**20)
    for shape in ([50, 30, 2], [4], []):
        made = values.of(shape, dtype)
        assert (made.shape, made.dtype.name) == (tf.TensorShape(shape), dtype)
        # On a CPU what is never written is zero.
        assert not tf.math.count_nonzero(tf.cast(made, tf.complex64)).numpy()


def test_a_variable_takes_it_for_its_value_without_any_memory():
    values = UntouchedTensors("CPU", 2**35)
    before = resident()
    for _ in range(3):
        variable = resource_variable_ops.UninitializedVariable(shape=[2**17, 2**16], dtype=tf.float32)
        variable.assign(values.of([2**17, 2**16], "float32"), read_value=False)
        assert tf.raw_ops.VariableShape(input=variable.handle).numpy().tolist() == [2**17, 2**16]
    # 96 GiB of values; what is left is Python's.
    assert resident() - before < 2**26
