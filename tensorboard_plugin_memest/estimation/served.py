"""How much an export traces: the model's own call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.framework import func_graph as tf_func_graph

from tensorboard_plugin_memest.estimation.discard import discard_graph
from tensorboard_plugin_memest.estimation.trace import UntraceableError


@dataclass(frozen=True)
class Served:
    """What a call of a model is made of: ops, those in its functions included, and functions, which are its loops'."""

    ops: int
    functions: int


def served(model: keras.Model, x: Any, *, any_size: bool) -> Served:
    """What calling `model` on a batch is made of; call it where new variables hold no memory.

    Args:
        model: built.
        x: specs of its inputs for some batch size.
        any_size: whether it takes batches of any size, as which it is exported then.

    Raises:
        UntraceableError: the call cannot be traced, and so the model not be exported.
    """

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def call(fed: Any) -> Any:
        return model(fed, training=False)

    specs = x
    if any_size:
        specs = tf.nest.map_structure(lambda spec: tf.TensorSpec([None, *spec.shape[1:]], spec.dtype), x)
    try:
        graph = tf_func_graph.func_graph_from_py_func("served", call, (specs,), {})
    except Exception as error:
        raise UntraceableError(
            f"The model {model.name!r} ({type(model).__name__}) cannot be exported: its call cannot be traced "
            f"for {specs}: {type(error).__name__}: {error}\nLeave the directory out of saves=."
        ) from error
    definition = graph.as_graph_def()
    discard_graph(graph)
    functions = definition.library.function
    return Served(len(definition.node) + sum(len(one.node_def) for one in functions), len(functions))
