"""Records how variables would be created, and creates them without memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

from tensorboard_plugin_memest.estimation.eager import EagerRun, traced_eagerly


@dataclass(frozen=True)
class Creation:
    """A variable's handle and what computing its first value does to memory."""

    handle: Any
    run: EagerRun


class Creations:
    """All variables created inside `recorded`, in order."""

    def __init__(self) -> None:
        self.all: list[Creation] = []
        # A handle in a graph that never runs is nothing but a name; an eager one takes a little memory.
        self._handles = tf.Graph()

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Inside, new variables have a shape and a handle but are never initialized, so they hold nothing."""
        with tf.variable_creator_scope(self._create):
            yield

    def _create(self, _: Callable[..., Any], **arguments: Any) -> Any:
        initial_value = arguments["initial_value"]
        dtype = arguments.get("dtype")
        run = traced_eagerly(initial_value if callable(initial_value) else lambda: _constant_like(initial_value, dtype))
        with self._handles.as_default():
            variable = resource_variable_ops.UninitializedVariable(
                trainable=arguments.get("trainable"),
                shape=arguments.get("shape") or run.shape,
                dtype=dtype or run.dtype,
                name=arguments.get("name"),
            )
        self.all.append(Creation(variable.handle, run))
        return variable


def _constant_like(value: Any, dtype: Any) -> tf.Tensor:
    if not tf.is_tensor(value):
        return tf.convert_to_tensor(value, dtype)
    # Only its size matters here, and a tensor of another graph could not be used in the scratch graph.
    return tf.zeros(value.shape, value.dtype)
