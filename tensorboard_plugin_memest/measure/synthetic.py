"""A batch of made-up data."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

_SEED = (1, 2)


def synthetic_batch(specs: Any) -> Any:
    """Tensors of `specs`, a structure of `tf.TensorSpec`, in TensorFlow's own memory.

    Numbers with a fraction are uniform between 0 and 1. Whole numbers are 0, which is a class, a word and an index
    whatever the model; texts are empty.
    """
    return keras.tree.map_structure(_tensor, specs)


def _tensor(spec: tf.TensorSpec) -> tf.Tensor:
    dtype = tf.as_dtype(spec.dtype)
    if dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
        return tf.random.stateless_uniform(spec.shape, _SEED, dtype=dtype)
    # What NumPy makes may be used in place, outside of the allocator; what an op makes is not.
    return tf.fill(spec.shape, "") if dtype == tf.string else tf.zeros(spec.shape, dtype)
