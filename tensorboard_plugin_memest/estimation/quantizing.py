"""Lets a model that is built without memory be quantized.

Keras computes quantized weights with NumPy, on the host, and takes it for a layer that cannot be quantized when its
weights have no values: with a warning the layer stays as it was. Of weights without values only shapes and types count:
zeros are quantized instead, which takes host memory for one layer at a time.
Source: `keras/src/quantizers/quantizers.py`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src import quantizers as package
from keras.src.quantizers import quantizers

# What computes with NumPy in any case, and the argument that makes others do so.
_PACKING = "pack_int4"
_IN_NUMPY = "to_numpy"


@contextlib.contextmanager
def quantized_on_paper() -> Iterator[None]:
    """Inside, weights that have no values can be quantized."""
    replaced = [
        (module, name, original, _on_paper(original))
        for module in (package, quantizers)
        for name, original in vars(module).items()
        if inspect.isfunction(original) and (name == _PACKING or _IN_NUMPY in inspect.signature(original).parameters)
    ]
    for module, name, _, on_paper in replaced:
        setattr(module, name, on_paper)
    try:
        yield
    finally:
        for module, name, original, _ in replaced:
            setattr(module, name, original)


def _on_paper(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def either(weight: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(tf.convert_to_tensor(weight), "numpy"):
            return original(weight, *args, **kwargs)
        dtype = keras.backend.standardize_dtype(weight.dtype)
        with tf.Graph().as_default():
            computed = original(np.zeros(weight.shape, dtype), *args, **kwargs)
        return tuple(tf.zeros(one.shape, one.dtype) if tf.is_tensor(one) else one for one in computed)

    return either
