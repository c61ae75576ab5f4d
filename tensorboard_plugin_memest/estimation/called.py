"""A traced step as TensorFlow's runtime hands it to Grappler: with its arguments, and inlined into what calls it.

Grappler's result depends on all of this, down to the order of its nodes, which decides what the executor runs first:
its pruning puts nodes in the order in which a search from the fetched ones meets them. Source of the rules:
`optimize_function_graph_utils.cc`, `inline_function_utils.cc`, and what the runtime dumps of real trainings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2, tensor_shape_pb2, types_pb2
from tensorflow.python.eager import context as tf_context
from tensorflow.python.framework import func_graph as tf_func_graph

from tensorboard_plugin_memest.estimation.lowering import lowered
from tensorboard_plugin_memest.estimation.variables import Variable, is_small

# What Keras' `multi_step_on_iterator` consists of.
_CALL = "StatefulPartitionedCall"
_NEXT = "IteratorGetNext"
_OPTIONAL = "optional"
_RETURNED = "identity_RetVal"

# The name of an op of the step after inlining, also in those of constants that Grappler folded from it.
_INLINED = re.compile(rf"^((?:[A-Za-z]+/)?){_CALL}/")


@dataclass(frozen=True)
class TracedStep:
    """A traced function as plain protocol buffers, which outlive the graph they were made of.

    Attributes:
        definition: its ops, with the shapes that tracing found out.
        inputs: names of the placeholders for its arguments, in order, those for what it captures among them.
        captured: name of a placeholder for a captured tensor that is no variable, to the tensor's shape.
        values: name of a placeholder for a captured tensor that is small and exists, to its value.
        fed: names of placeholders for tensors that the caller passes, and holds until it has run.
        fetched: names of the tensors that it returns.
        types: their types.
        kept: names of the ops that have to run, whoever reads them.
    """

    definition: graph_pb2.GraphDef
    inputs: Sequence[str]
    captured: Mapping[str, tensor_shape_pb2.TensorShapeProto]
    values: Mapping[str, np.ndarray]
    fed: Collection[str]
    fetched: Sequence[str]
    types: Sequence[int]
    kept: Sequence[str]


def traced_step(graph: tf_func_graph.FuncGraph, fed: Collection[str] = ()) -> TracedStep:
    """`graph` as it can be kept; `fed` are names of placeholders for tensors that its caller passes."""
    return TracedStep(
        definition=graph.as_graph_def(add_shapes=True),
        inputs=[tensor.op.name for tensor in graph.inputs],
        captured={
            internal.op.name: external.shape.as_proto()
            for external, internal in graph.captures
            if external.dtype not in (tf.resource, tf.variant) and external.shape.is_fully_defined()
        },
        values=dict(_captured_values(graph)),
        fed=frozenset(fed),
        fetched=[tensor.name for tensor in graph.outputs],
        types=[tensor.dtype.as_datatype_enum for tensor in graph.outputs],
        kept=[op.name for op in graph.control_outputs],
    )


def _captured_values(graph: tf_func_graph.FuncGraph) -> Iterator[tuple[str, np.ndarray]]:
    with tf_context.eager_mode():
        for external, internal in graph.captures:
            exists = hasattr(external, "numpy") and external.dtype not in (tf.resource, tf.variant, tf.string)
            if exists and is_small(external.shape):
                yield internal.op.name, external.numpy()


@dataclass(frozen=True)
class CalledStep:
    """A step's graph as Grappler gets it.

    Attributes:
        definition: the nodes and the functions that they call.
        kept: names of nodes that have to stay.
        around: names of the nodes that are around the step and not of it.
        results: names of those of them that take what the step returns, in order.
        arguments: name that an argument has in `definition`, to its name in the traced graph.
        inlined: whether the step's ops have the name of a call before their own.
        shapes: by name of a node that was inside a function, what tracing found out about its outputs.
    """

    definition: graph_pb2.GraphDef
    kept: list[str]
    around: Collection[str]
    results: list[str]
    arguments: Mapping[str, str] = field(repr=False)
    inlined: bool
    shapes: Mapping[str, Sequence[tensor_shape_pb2.TensorShapeProto]] = field(default_factory=dict, repr=False)


def called_step(step: TracedStep, handles: Mapping[str, Variable]) -> CalledStep:
    """A step as it is called: by `fit`, if its first argument is an iterator that it takes its batch from, or directly.

    Args:
        step: as traced.
        handles: name of a placeholder for a captured variable, to the variable.
    """
    nodes = {node.name: node for node in step.definition.node}
    arguments = [_argument(step, nodes[name], handles.get(name)) for name in step.inputs]
    batches = [
        node for node in step.definition.node if node.op == _NEXT and node.input[0] == next(iter(step.inputs), None)
    ]
    return _called_by_fit(step, arguments, batches[0]) if len(batches) == 1 else _called_directly(step, arguments)


def step_of_optimized(optimized: graph_pb2.GraphDef, called: CalledStep) -> tuple[graph_pb2.GraphDef, list[str]]:
    """The step alone, with the names that it was traced with, and the tensors that it returns.

    What the runtime puts around the step goes; it has no memory of its own.
    """
    step = graph_pb2.GraphDef(versions=optimized.versions, library=optimized.library)
    results: dict[str, list[str]] = {}
    for node in optimized.node:
        if node.name in called.results:
            results[node.name] = [_traced(name, called) for name in node.input if not name.startswith("^")]
        if node.name in called.around:
            continue
        kept = step.node.add()
        kept.CopyFrom(node)
        kept.name = _traced(node.name, called)
        del kept.input[:]
        kept.input.extend(_traced(name, called) for name in node.input if name.lstrip("^") not in called.around)
    return step, [name for taking in called.results for name in results[taking]]


def _called_directly(step: TracedStep, arguments: Sequence[node_def_pb2.NodeDef]) -> CalledStep:
    made = _with_arguments(step, arguments)
    given = set(step.inputs)
    for node in step.definition.node:
        if node.name not in given:
            _copy_plain(node, made.node.add())
    results = []
    for number, (tensor, dtype) in enumerate(zip(step.fetched, step.types, strict=True)):
        results.append(f"identity_{number}_RetVal")
        returned = made.node.add(name=results[-1], op="_Retval", input=[tensor.removesuffix(":0")])
        returned.attr["T"].type = dtype
        returned.attr["index"].i = number
    kept = [*results, *(name for name in step.kept if name not in given)]
    made, shapes = lowered(made, 0)
    return CalledStep(made, kept, results, results, {}, inlined=False, shapes=shapes)


def _called_by_fit(
    step: TracedStep, arguments: Sequence[node_def_pb2.NodeDef], batch: node_def_pb2.NodeDef
) -> CalledStep:
    names = {"iterator": step.inputs[0], **{_unknown(number): name for number, name in enumerate(step.inputs[1:])}}
    made = _with_arguments(step, arguments)
    for node, name in zip(made.node, names, strict=True):
        node.name = name
    following = made.node.add(name=_NEXT, op=_NEXT, input=["iterator"])
    for attribute in ("output_types", "output_shapes"):
        following.attr[attribute].CopyFrom(batch.attr[attribute])
    optional = made.node.add(name=_OPTIONAL, op="OptionalFromValue")
    optional.attr["Toutput_types"].list.type.extend(step.types)
    waiting = made.node.add(name="NoOp", op="NoOp")
    for name, op, inputs in (("Identity", "Identity", [_OPTIONAL, "^NoOp"]), (_RETURNED, "_Retval", ["Identity"])):
        made.node.add(name=name, op=op, input=inputs).attr["T"].type = tf.variant.as_datatype_enum

    inlining = _Inlining(made, outside={batch.name, *step.inputs})
    for number, dtype in enumerate(batch.attr["output_types"].list.type):
        inlining.take(f"{batch.name}:{number}", f"{_NEXT}:{number}" if number else _NEXT, dtype)
    for (name, old), argument in list(zip(names.items(), arguments, strict=True))[1:]:
        inlining.take(f"{old}:0", name, argument.attr["T"].type)
    for node in step.definition.node:
        inlining.add(node)
    for tensor, dtype in zip(step.fetched, step.types, strict=True):
        optional.input.append(inlining.give(tensor, dtype))
    done = inlining.end(step.kept)
    waiting.input.extend([f"^{done}", f"^{_NEXT}"])
    around = {_RETURNED, _OPTIONAL, "Identity", "NoOp", _CALL}
    made, shapes = lowered(made, inlining.numbered)
    called = CalledStep(made, [_RETURNED, _CALL], around, [_OPTIONAL], names, inlined=True)
    return replace(called, shapes={_traced(name, called): found for name, found in shapes.items()})


def _with_arguments(step: TracedStep, arguments: Sequence[node_def_pb2.NodeDef]) -> graph_pb2.GraphDef:
    made = graph_pb2.GraphDef(versions=step.definition.versions, library=step.definition.library)
    made.node.extend(arguments)
    for number, node in enumerate(made.node):
        node.attr["index"].i = number
    return made


def _copy_plain(node: node_def_pb2.NodeDef, plain: node_def_pb2.NodeDef) -> None:
    """Copies a node without what a run's graph leaves out: its colocation, and shapes that tracing found out."""
    plain.CopyFrom(node)
    for attribute in ("_class", "_output_shapes"):
        plain.attr.pop(attribute, None)


class _Inlining:
    """Puts the body of the called function into the graph of its caller, in the runtime's way.

    Args:
        definition: the caller's graph.
        outside: nodes of the traced graph that stay outside.
    """

    def __init__(self, definition: graph_pb2.GraphDef, outside: Collection[str]) -> None:
        self._definition = definition
        self._outside = outside
        self._number = 0
        self._taken: dict[str, str] = {}

    @property
    def numbered(self) -> int:
        """How many names have a number."""
        return self._number

    def take(self, traced: str, source: str, dtype: int) -> None:
        """Makes `source` what the traced tensor is inside."""
        self._taken[traced] = self._identity("input", source, dtype)

    def add(self, node: node_def_pb2.NodeDef) -> None:
        """Adds a node of the body."""
        if node.name in self._outside:
            return
        inlined = self._definition.node.add()
        _copy_plain(node, inlined)
        inlined.name = f"{_CALL}/{node.name}"
        del inlined.input[:]
        inlined.input.extend(self._data(name) for name in node.input if not name.startswith("^"))
        inlined.input.extend(self._controls(name[1:] for name in node.input if name.startswith("^")))

    def give(self, traced: str, dtype: int) -> str:
        """The name that the traced tensor has outside."""
        return self._identity("output", self._data(traced), dtype)

    def end(self, awaited: Iterable[str]) -> str:
        """The name of a node, outside, that waits for the traced nodes `awaited`, and so for the body."""
        name = self._name("output_control_node")
        self._definition.node.add(name=name, op="NoOp", input=self._controls(awaited))
        self._definition.node.add(name=_CALL, op="NoOp", input=[f"^{name}"])
        return name

    def _data(self, traced: str) -> str:
        node, _, number = traced.partition(":")
        taken = self._taken.get(f"{node}:{number or 0}")
        return taken or f"{_CALL}/{node}" + (f":{number}" if number not in ("", "0") else "")

    def _controls(self, traced: Iterable[str]) -> list[str]:
        # The runtime writes control inputs down in the order of their names.
        return sorted(f"^{_CALL}/{name}" for name in traced if name not in self._outside)

    def _identity(self, kind: str, source: str, dtype: int) -> str:
        name = self._name(kind)
        self._definition.node.add(name=name, op="Identity", input=[source]).attr["T"].type = dtype
        return name

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"Func/{_CALL}/{kind}/_{self._number - 1}"


def _unknown(number: int) -> str:
    return "unknown" if number == 0 else f"unknown_{number - 1}"


def _argument(step: TracedStep, traced: node_def_pb2.NodeDef, variable: Variable | None) -> node_def_pb2.NodeDef:
    made = node_def_pb2.NodeDef(name=traced.name, op="_Arg")
    made.attr["T"].type = traced.attr["dtype"].type
    # What variables look like, and tensors, is all that Grappler gets to know about the arguments.
    if variable is not None:
        made.attr["_handle_shapes"].list.shape.append(tf.TensorShape(variable.shape).as_proto())
        made.attr["_handle_dtypes"].list.type.append(tf.as_dtype(variable.dtype).as_datatype_enum)
    elif traced.name in step.captured:
        made.attr["_output_shapes"].list.shape.append(step.captured[traced.name])
    elif traced.attr["dtype"].type not in (types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT):
        made.attr["_output_shapes"].CopyFrom(traced.attr["_output_shapes"])
    return made


def _traced(name: str, called: CalledStep) -> str:
    """The name that a node or a tensor had when it was traced."""
    control = "^" if name.startswith("^") else ""
    node, colon, number = name.removeprefix("^").partition(":")
    if called.inlined:
        node = called.arguments.get(node) or _INLINED.sub(r"\1", node)
    return f"{control}{node}{colon}{number}"
