"""Layers that run again in the backward pass instead of keeping what they computed.

Chen, Xu, Zhang, Guestrin: Training Deep Nets with Sublinear Memory Cost, 2016. `keras.RematScope` does the same for
layers that are called with nothing but their inputs: on TensorFlow neither recurrent ones nor attention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


def recomputed(call: Callable[..., Any]) -> Callable[..., Any]:
    """A layer's `call` that computes again, in the backward pass, what its own gradient needs."""

    def again(*inputs: Any, **options: Any) -> Any:
        # What only the function refers to gets no gradient.
        named = {name: one for name, one in options.items() if tf.is_tensor(one) and one.dtype.is_floating}
        others = {name: one for name, one in options.items() if name not in named}
        return tf.recompute_grad(lambda inputs, named: call(*inputs, **named, **others))(inputs, named)

    return again


def can_be_recomputed(layer: keras.layers.Layer) -> bool:
    """Whether running `layer` twice is running it once: it draws no random numbers and keeps no averages."""
    return bool(layer.built and not layer.non_trainable_variables)
