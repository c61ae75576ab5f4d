"""What small variables hold that exist: counters and bounds, which decide what a step runs."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.eager import context as tf_context
from tensorflow.python.eager import record

from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.graph import Value
from tensorboard_plugin_memest.estimation.trace import Trace
from tensorboard_plugin_memest.estimation.variables import Variable, is_small


def held_values(trace: Trace, creations: Creations) -> dict[Variable, Value]:
    """The values of the small variables that a traced step uses.

    Args:
        trace: the step.
        creations: the variables that were created meanwhile, which nobody has given a value.
    """
    created = {id(creation.handle) for creation in creations.all}
    found: dict[Variable, Value] = {}
    with tf_context.eager_mode(), record.stop_recording():
        for handle, _ in trace.graph.captures:
            variable = trace.variables.of_handle(handle) if handle.dtype == tf.resource else None
            if variable is None or id(handle) in created or not hasattr(handle, "numpy"):
                continue
            if variable.bytes and is_small(variable.shape) and tf.raw_ops.VarIsInitializedOp(resource=handle):
                found[variable] = tf.raw_ops.ReadVariableOp(resource=handle, dtype=variable.dtype).numpy()
    return found
