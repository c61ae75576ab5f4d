"""Compiles a step with XLA and writes the compiler's own account of it. A process of its own.

python -m tensorboard_plugin_memest.estimation.xla.compiler

Every line of its input names a folder that holds `header.json` and `graph.pb` (see `request`); the answer is
`compiled.hlo`, a serialized HloProto, or `error.txt`, and is whole when there is a file `done`. Compiling needs every
variable to have a value of its shape. All of them get the same one here: pages of one mapping that are never touched,
so that a model larger than the machine can be compiled.
"""

from __future__ import annotations

import json
import math
import mmap
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import compiler_ir
from tensorflow.python.ops import resource_variable_ops

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"

# Linux's flag for address space that nothing is set aside for; Python's mmap has no name for it before 3.13.
_NO_RESERVE = 0x4000


def main(folder: Path) -> None:
    try:
        header = json.loads((folder / "header.json").read_text())
        compiled = _compiled((folder / "graph.pb").read_bytes(), header["arguments"], header["fetches"])
    except Exception as error:
        traceback.print_exc()
        (folder / "error.txt").write_text(f"{type(error).__name__}: {error}")
        return
    (folder / "compiled.hlo").write_bytes(compiled)


def _compiled(serialized: bytes, arguments: list[Any], fetches: list[str]) -> bytes:
    graph = tf.compat.v1.GraphDef.FromString(serialized)
    for function in graph.library.function:
        # The compiler looks the functions that functions call up here.
        context.context().add_function_def(function)
    try:
        return _compiled_graph(graph, arguments, fetches)
    finally:
        # The next step may call others by the same names.
        for function in graph.library.function:
            context.context().remove_function(function.signature.name)


def _compiled_graph(graph: Any, arguments: list[Any], fetches: list[str]) -> bytes:
    values = _Values(max((_bytes(shape, dtype) for _, _, shape, dtype in arguments), default=0))
    feeds = [tf.TensorSpec(shape, dtype) for kind, _, shape, dtype in arguments if kind == "feed"]
    outside = []
    for kind, _, shape, dtype in arguments:
        if kind == "variable":
            variable = resource_variable_ops.UninitializedVariable(shape=shape, dtype=dtype)
            variable.assign(values.of(shape, dtype), read_value=False)
            outside.append(variable)
        elif kind == "tensor":
            outside.append(values.of(shape, dtype))
    names = [name for _, name, _, _ in arguments]

    @tf.function(jit_compile=True, autograph=False)  # type: ignore[untyped-decorator]
    def step(*fed: tf.Tensor) -> Any:
        inside = tf.compat.v1.get_default_graph()
        captured = [inside.capture(getattr(value, "handle", value)) for value in outside]
        given = dict(zip(names, [*fed, *captured], strict=True))
        read = {name.partition(":")[0] for node in graph.node for name in node.input}
        used = {name: tensor for name, tensor in given.items() if name in read}
        return tf.graph_util.import_graph_def(graph, input_map=used, return_elements=fetches, name="")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile_to = compiler_ir.from_concrete_function(step.get_concrete_function(*feeds), feeds)
        compiled: bytes = compile_to(stage="optimized_hlo_proto_serialized", device_name=_DEVICE)
    return compiled


class _Values:
    """Tensors of any shape that share one piece of address space."""

    def __init__(self, largest: int) -> None:
        pages = math.ceil(max(largest, 1) / mmap.PAGESIZE) * mmap.PAGESIZE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._bytes = np.frombuffer(
            mmap.mmap(-1, pages, flags=flags | (_NO_RESERVE if sys.platform == "linux" else 0)), np.uint8
        )

    def of(self, shape: list[int], dtype: str) -> tf.Tensor:
        kind = tf.as_dtype(dtype)
        size = _bytes(shape, dtype)
        if size == 0 or kind == tf.bool:
            return tf.zeros(shape, kind)
        raw = tf.experimental.dlpack.from_dlpack(self._bytes[:size].__dlpack__())
        if kind == tf.uint8:
            return tf.reshape(raw, shape)
        # Neither a bitcast nor a reshape touches the memory.
        return tf.reshape(tf.bitcast(raw if kind.size == 1 else tf.reshape(raw, [-1, kind.size]), kind), shape)


def _bytes(shape: list[int], dtype: str) -> int:
    size: int = tf.as_dtype(dtype).size
    return math.prod(shape) * size


if __name__ == "__main__":
    for line in sys.stdin:
        main(Path(line.rstrip("\n")))
        (Path(line.rstrip("\n")) / "done").touch()
