"""What others would say: Grappler's own predictor, and the formula that people use."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context as tf_context
from tensorflow.python.framework import meta_graph
from tensorflow.python.grappler import cluster as tf_cluster
from tensorflow.python.grappler import item as tf_item

from benchmarks.models import CONFIGURATIONS
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.training import Training, training_of_function


def baselines(name: str) -> dict[str, Any]:
    """Bytes of a step as Grappler and as the formula have it; call it in a fresh process."""
    configuration = CONFIGURATIONS[name]
    given = Given(configuration.batch_size, None, None, configuration.inputs, configuration.targets)
    with tf_context.eager_mode(), untouched_globals():
        training = training_of_function(configuration.build, given)
        try:
            formula = _formula(training)
            started = time.perf_counter()
            predicted = grappler_peak(training)
            return {"formula": formula, "grappler": predicted, "grappler_seconds": time.perf_counter() - started}
        finally:
            training.discard()


def _formula(training: Training) -> int:
    """Weights, gradients and slots, and twice the outputs of all layers."""
    variables = training.trace.variables.all
    held = sum(variable.bytes for variable in variables)
    gradients = 4 * training.trainable_parameters
    half = any("16" in variable.dtype for variable in variables)
    paths = [layer.path for layer in training.layers]
    outputs = 0
    for layer in training.layers:
        inner = any(path.startswith(f"{layer.path}/") for path in paths)
        if inner or layer.output_shape is None or layer.class_name == "InputLayer":
            continue
        elements = 1
        for size in layer.output_shape:
            elements *= size or 1
        outputs += (2 if half else 4) * elements
    return held + gradients + 2 * outputs


def grappler_peak(training: Training) -> int | None:
    """What `Cluster.DeterminePeakMemoryUsage` says of the traced step; None where it fails."""
    trace = training.trace
    definition = trace.graph.as_graph_def(add_shapes=True)
    for node in definition.node:
        node.device = "/job:localhost/replica:0/task:0/device:CPU:0"
        if node.name in trace.handles:
            variable = trace.handles[node.name]
            # As a captured placeholder it would have no size.
            node.op = "VarHandleOp"
            node.attr.clear()
            node.attr["dtype"].type = tf.as_dtype(variable.dtype).as_datatype_enum
            node.attr["shape"].shape.CopyFrom(tf.TensorShape(variable.shape).as_proto())
            node.attr["shared_name"].s = node.name.encode()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
    meta = meta_graph.create_meta_graph_def(graph=graph)
    wanted = {output.op.name for output in trace.graph.outputs} | {op.name for op in trace.graph.control_outputs}
    meta.collection_def["train_op"].node_list.value.extend(sorted(wanted))
    try:
        item = tf_item.Item(meta)
        with tf_cluster.Provision(allow_soft_placement=False, disable_detailed_stats=True) as cluster:
            usage = cluster.DeterminePeakMemoryUsage(item)
    except (RuntimeError, ValueError, TypeError, tf.errors.OpError):
        return None
    return max((peak for peak, _ in usage.values()), default=None)
