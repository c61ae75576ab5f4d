"""Keeps the constants that shape inference works out apart from the device's memory."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.eager import context as tf_context


def apart_from_the_device() -> None:
    """Has TensorFlow hold small constants of graphs outside of the device's allocator, where that can still be had.

    While a graph is made, TensorFlow computes the values of shapes. The first such value decides for the whole process
    which allocator they come from (`cpu_allocator` in `tensorflow/core/framework/allocator.cc`): if there are devices
    already, the CPU's, which `get_memory_info` counts; else the C library's. Loops create the devices on the way.
    """
    if tf_context.context()._context_handle is None:
        with tf.Graph().as_default():
            tf.reshape(tf.constant([0, 0]), tf.constant([2, 1]))
