"""Compiles a step with XLA and writes the compiler's own account of it. A process of its own.

python -m tensorboard_plugin_memest.estimation.xla.compiler

Every line of its input names a folder that holds `header.json` and `graph.pb` (see `request`); the answer is
`compiled.hlo`, a serialized HloProto, or `error.txt`, and is whole when there is a file `done`. Compiling needs every
variable to have a value of its shape. All of them get the same one here, which takes no memory (`untouched`), so that a
model larger than the machine can be compiled.
"""

from __future__ import annotations

import json
import math
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import compiler_ir
from tensorflow.python.ops import resource_variable_ops

from tensorboard_plugin_memest.estimation.xla.untouched import UntouchedTensors


def main(folder: Path) -> None:
    try:
        header = json.loads((folder / "header.json").read_text())
        compiled = _compiled((folder / "graph.pb").read_bytes(), **header)
    except Exception as error:
        traceback.print_exc()
        (folder / "error.txt").write_text(f"{type(error).__name__}: {error}")
        return
    (folder / "compiled.hlo").write_bytes(compiled)


def _compiled(serialized: bytes, arguments: list[Any], fetches: list[str], device: str) -> bytes:
    graph = tf.compat.v1.GraphDef.FromString(serialized)
    for function in graph.library.function:
        # The compiler looks the functions that functions call up here.
        context.context().add_function_def(function)
    try:
        return _compiled_graph(graph, arguments, fetches, device)
    finally:
        # The next step may call others by the same names.
        for function in graph.library.function:
            context.context().remove_function(function.signature.name)


def _compiled_graph(graph: Any, arguments: list[Any], fetches: list[str], device: str) -> bytes:
    values = UntouchedTensors(device, max((_bytes(shape, dtype) for _, _, shape, dtype in arguments), default=0))
    place = f"/job:localhost/replica:0/task:0/device:{device}:0"
    feeds = [tf.TensorSpec(shape, dtype) for kind, _, shape, dtype in arguments if kind == "feed"]
    outside = []
    for kind, _, shape, dtype in arguments:
        if kind == "variable":
            with tf.device(place):
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
        compiled: bytes = compile_to(stage="optimized_hlo_proto_serialized", device_name=place)
    return compiled


def _bytes(shape: list[int], dtype: str) -> int:
    size: int = tf.as_dtype(dtype).size
    return math.prod(shape) * size


if __name__ == "__main__":
    for line in sys.stdin:
        main(Path(line.rstrip("\n")))
        (Path(line.rstrip("\n")) / "done").touch()
