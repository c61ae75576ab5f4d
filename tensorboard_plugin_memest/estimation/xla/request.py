"""A traced step in a form that another process can compile: its graph, and what it is fed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2

from tensorboard_plugin_memest.estimation.called import TracedStep
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.estimation.xla.target import ON_CPU, Target

FEED = "feed"
VARIABLE = "variable"
TENSOR = "tensor"

_NEXT = "IteratorGetNext"


@dataclass(frozen=True)
class Argument:
    """One argument of the compiled step, in the order of its parameters.

    Attributes:
        kind: FEED (a tensor of the batch), VARIABLE, or TENSOR (one that lives outside the step).
        name: name of the tensor or placeholder in the graph.
        shape: dimensions.
        dtype: such as `"float32"`.
    """

    kind: str
    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Request:
    """What to compile.

    Attributes:
        graph: a serialized GraphDef without placeholders for the arguments.
        arguments: feeds, then variables, then tensors.
        fetches: names of what the step returns.
        target: what it is compiled for.
    """

    graph: bytes
    arguments: tuple[Argument, ...]
    fetches: tuple[str, ...]
    target: Target = ON_CPU

    def header(self) -> str:
        """Everything but the graph, as JSON."""
        return json.dumps(
            {
                "arguments": [[one.kind, one.name, list(one.shape), one.dtype] for one in self.arguments],
                "fetches": list(self.fetches),
                "device": self.target.kind,
            }
        )

    def digest(self, *versions: str) -> str:
        """The same for the same request and versions, and for no other."""
        found = hashlib.sha256()
        for part in (*versions, self.target.name, self.header()):
            found.update(part.encode() + b"\0")
        found.update(self.graph)
        return found.hexdigest()


class NotCompilableError(RuntimeError):
    """The step is no graph that XLA could be given; the text says why."""


def request_of(step: TracedStep, handles: Mapping[str, Variable], target: Target = ON_CPU) -> Request:
    """A traced step as a request.

    Args:
        step: the step, traced on an iterator.
        handles: name of a placeholder for a captured variable, to the variable.
        target: what it is compiled for.

    Raises:
        NotCompilableError: it uses a resource that is no variable, or a tensor of unknown shape.
    """
    feeds: list[Argument] = []
    renamed: dict[str, str] = {}
    given = {node.name: node for node in step.definition.node if node.op == "Placeholder"}
    taken = {node.name for node in step.definition.node if node.op == _NEXT}
    kept = graph_pb2.GraphDef(versions=step.definition.versions)
    kept.library.CopyFrom(step.definition.library)
    for node in step.definition.node:
        if node.op == _NEXT:
            types, shapes = node.attr["output_types"].list.type, node.attr["output_shapes"].list.shape
            for number, (dtype, shape) in enumerate(zip(types, shapes, strict=True)):
                name = f"{node.name}_{number}"
                renamed[f"{node.name}:{number}"] = name
                feeds.append(_argument(FEED, name, tf.TensorShape(shape), tf.as_dtype(dtype)))
        elif node.name in step.fed:
            shape, dtype = node.attr["_output_shapes"].list.shape[0], node.attr["dtype"].type
            feeds.append(_argument(FEED, node.name, tf.TensorShape(shape), tf.as_dtype(dtype)))
        elif node.name not in given:
            kept.node.append(node)
    for node in kept.node:
        node.device = ""
        node.input[:] = [
            renamed.get(name if ":" in name else f"{name}:0", name) for name in node.input if name[1:] not in taken
        ]
    read = {name.partition(":")[0] for node in kept.node for name in node.input}
    tensors = [
        _argument(TENSOR, name, tf.TensorShape(step.captured.get(name)), tf.as_dtype(node.attr["dtype"].type))
        for name, node in given.items()
        if name in read and name not in handles and name not in step.fed
    ]
    variables = [Argument(VARIABLE, name, variable.shape, variable.dtype) for name, variable in handles.items()]
    return Request(
        graph=_numbered(kept).SerializeToString(deterministic=True),
        arguments=(*feeds, *variables, *tensors),
        fetches=tuple(name for name in dict.fromkeys(step.fetched) if name.partition(":")[0] not in given),
        target=target,
    )


def _numbered(graph: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
    """The same graph with its functions numbered as they are met, and without those that nothing calls.

    TensorFlow counts everything it ever traced, and the same step of the same model would be another one each time.
    """
    library = {function.signature.name: function for function in graph.library.function}
    numbers: dict[str, str] = {}
    waiting: list[str] = []

    def numbered(name: str) -> str:
        if name not in library:
            return name
        if name not in numbers:
            numbers[name] = f"function_{len(numbers)}"
            waiting.append(name)
        return numbers[name]

    def rename(nodes: Iterable[node_def_pb2.NodeDef]) -> None:
        for node in nodes:
            node.op = numbered(node.op)
            # Registered under a number too, for a gradient that the step has already.
            node.attr.pop("_gradient_op_type", None)
            # What tracing found out about shapes, XLA finds again.
            node.attr.pop("_output_shapes", None)
            for _, attribute in sorted(node.attr.items()):
                for call in [attribute.func] if attribute.HasField("func") else attribute.list.func:
                    call.name = numbered(call.name)

    rename(graph.node)
    functions = []
    while waiting:
        function = library[waiting.pop(0)]
        function.signature.name = numbers[function.signature.name]
        rename(function.node_def)
        _number_arguments(function)
        for unused in ("forward_function_name", "backward_function_name"):
            function.attr.pop(unused, None)
        functions.append(function)
    result = graph_pb2.GraphDef(versions=graph.versions, node=graph.node)
    result.library.function.extend(functions)
    return result


def _number_arguments(function: function_pb2.FunctionDef) -> None:
    """Names the arguments by position: TensorFlow puts the numbered names of functions into some of theirs."""
    names = {}
    for number, argument in enumerate(function.signature.input_arg):
        names[argument.name] = f"argument_{number}"
        argument.name = names[argument.name]
    for node in function.node_def:
        node.input[:] = [names.get(name, name) for name in node.input]
    for result, source in list(function.ret.items()):
        function.ret[result] = names.get(source, source)


def _argument(kind: str, name: str, shape: tf.TensorShape, dtype: tf.DType) -> Argument:
    if dtype in (tf.resource, tf.variant, tf.string):
        raise NotCompilableError(f"it uses {name!r}, a {dtype.name}, which XLA cannot take")
    if not shape.is_fully_defined():
        raise NotCompilableError(f"the shape of {name!r} is not known before the run ({shape})")
    return Argument(kind, name, tuple(shape), dtype.name)
