"""Single kernels, made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from tensorboard_plugin_memest.estimation.device import CPU, Device
from tensorboard_plugin_memest.estimation.graph import Node, Output, StepGraph
from tensorboard_plugin_memest.estimation.workspace.catalogue import workspace_of
from tensorboard_plugin_memest.estimation.workspace.kernel import Kernel, Workspace


def device(kind: str = CPU, *, threads: int = 2, onednn: bool = False) -> Device:
    """A device with `threads` threads for one op."""
    return Device(kind, "growth", None, 1, threads, onednn)


def tensor(*shape: int, dtype: str = "float32") -> Output:
    return Output(shape, dtype, math.prod(shape) * tf.as_dtype(dtype).size)


def workspace(
    op: str,
    inputs: Sequence[Output | Sequence[int]],
    *outputs: Output,
    on: Device | None = None,
    by_xla: bool = False,
    **attributes: str | bool | Sequence[int],
) -> Workspace:
    """What the kernel of `op` needs; an input that is no Output is a constant list of integers."""
    nodes = []
    for number, given in enumerate(inputs):
        if isinstance(given, Output):
            nodes.append(Node(f"x{number}", "Placeholder", [], [], [given], {}))
            continue
        value = np.array(given, np.int32)
        proto = attr_value_pb2.AttrValue(tensor=tf.make_tensor_proto(value))
        nodes.append(Node(f"x{number}", "Const", [], [], [tensor(*value.shape, dtype="int32")], {"value": proto}))
    node = Node("op", op, [(n, 0) for n in range(len(inputs))], [], list(outputs), _protos(attributes))
    graph = StepGraph([*nodes, node], {}, [], [])
    return workspace_of(Kernel(graph, node, on or device()), by_xla=by_xla)


def _protos(attributes: dict[str, str | bool | Sequence[int]]) -> dict[str, attr_value_pb2.AttrValue]:
    protos = {}
    for name, value in attributes.items():
        proto = protos[name] = attr_value_pb2.AttrValue()
        if isinstance(value, bool):
            proto.b = value
        elif isinstance(value, str):
            proto.s = value.encode()
        else:
            proto.list.i.extend(value)
    return protos
