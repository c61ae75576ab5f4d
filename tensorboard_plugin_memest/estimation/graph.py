"""The graph that TensorFlow would really run, as plain nodes with shapes and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2, tensor_shape_pb2, types_pb2
from tensorflow.core.protobuf import config_pb2, device_properties_pb2, meta_graph_pb2, rewriter_config_pb2
from tensorflow.python.framework import func_graph as tf_func_graph
from tensorflow.python.framework import function_def_to_graph
from tensorflow.python.grappler import cluster as tf_cluster
from tensorflow.python.grappler import tf_optimizer

from tensorboard_plugin_memest.estimation.bounded import bounded
from tensorboard_plugin_memest.estimation.called import (
    CalledStep,
    TracedStep,
    called_step,
    step_of_optimized,
    traced_step,
)
from tensorboard_plugin_memest.estimation.device import CPU
from tensorboard_plugin_memest.estimation.lowering import CALLS, lowered
from tensorboard_plugin_memest.estimation.variables import Variable, size_in_bytes

# A value that is known: an array, or for a list or an optional a tuple of those of its elements, None for what is not.
Value = Any

# Ops that only pass a tensor on, in or out of a loop or a branch.
PASSING = {"Enter", "Exit", "NextIteration", "LoopCond", "Merge", "Switch", "_SwitchN"}

_DEVICE_NAME = "/job:localhost/replica:0/task:0/device:{}:0"

# What the runtime says of the memory of every CPU, whatever it has (`threadpool_device_factory.cc`).
_CPU_BYTES = 256 * 2**20

# The attribute of constants that stand for what a run asks a variable's handle: where the handle comes from.
ASKED = "_memest_asked"

# The attribute in which the gradient of a function names the function.
_FORWARD = "forward_function_name"


@dataclass(frozen=True)
class Output:
    """One output of a node: shape (None when it is not known before the run), dtype and bytes (0 when unknown)."""

    shape: tuple[int, ...] | None
    dtype: str
    bytes: int


@dataclass
class Node:
    """One op of the optimized graph.

    Attributes:
        name: its name.
        op: its type.
        inputs: (index of the producing node, output of it) of each data input.
        control_inputs: indices of nodes that have to run before.
        outputs: what it makes.
        attributes: the NodeDef's attributes.
    """

    name: str
    op: str
    inputs: list[tuple[int, int]]
    control_inputs: list[int]
    outputs: list[Output]
    attributes: Mapping[str, Any] = field(repr=False)


@dataclass
class StepGraph:
    """Nodes of one step in the order in which TensorFlow's graph holds them.

    Attributes:
        nodes: all nodes; inputs refer to them by index.
        variable_of: index of a node that is a variable's handle, or passes it on, to the variable.
        fetches: (node, output) of what the step returns.
        unknown: names of nodes with an output of unknown size.
        held: nodes that stand for tensors which live outside the step: what a layer keeps as a tensor.
        fed: nodes that stand for what the caller of the step passes, and holds until it has run.
        values: what those of `held` are that are small.
        assumed: names of nodes whose first dimension was not known and was taken for the batch.
        bounded: names of nodes whose size depends on values, and was taken for the largest possible.
        arguments: in a function's graph, the nodes that stand for its arguments, in order.
        library: definitions of the functions that nodes call.
    """

    nodes: list[Node]
    variable_of: dict[int, Variable]
    fetches: list[tuple[int, int]]
    unknown: list[str]
    held: set[int] = field(default_factory=set)
    fed: set[int] = field(default_factory=set)
    values: Mapping[int, np.ndarray] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    bounded: list[str] = field(default_factory=list)
    arguments: list[int] = field(default_factory=list)
    library: Mapping[str, function_pb2.FunctionDef] = field(default_factory=dict, repr=False)

    @cached_property
    def unsized(self) -> frozenset[int]:
        """The nodes whose size tracing did not find out."""
        names = {*self.unknown, *self.assumed}
        return frozenset(index for index, node in enumerate(self.nodes) if node.name in names) if names else frozenset()

    def called(self, index: int) -> StepGraph | None:
        """The graph of the function that node `index` calls, if it does: one that the runtime leaves where it is."""
        node = self.nodes[index]
        name = self.called_name(index)
        if name not in self.library:
            return None
        shapes = [self.nodes[source].outputs[output].shape for source, output in node.inputs]
        variables = [self.variable_of.get(source) for source, _ in node.inputs]
        return _function_graph(self.library, name, shapes, variables)

    def is_compiled(self, index: int) -> bool:
        """Whether XLA compiles the function that node `index` calls."""
        attributes = self.library[self.called_name(index)].attr
        return "_XlaMustCompile" in attributes and attributes["_XlaMustCompile"].b

    def gradient_calls(self) -> dict[int, int]:
        """Nodes that call the gradient of a function, each to the node that calls the function itself."""
        calls = {name: index for index in range(len(self.nodes)) if (name := self.called_name(index)) in self.library}
        found = {}
        for name, index in calls.items():
            # Asking for an attribute that is not there would make it.
            attributes = self.library[name].attr
            own = attributes[_FORWARD].s.decode() if _FORWARD in attributes else ""
            if own in calls:
                found[index] = calls[own]
        return found

    def called_name(self, index: int) -> str:
        """The name of the function that node `index` calls; its op's type if it calls none."""
        node = self.nodes[index]
        return str(node.attributes["f"].func.name) if node.op in CALLS else node.op


@dataclass(frozen=True)
class Sizes:
    """What decides how large tensors are, where tracing does not find that out and only a run on paper does.

    Attributes:
        values: by the name of a node with one output, the value of that.
        shapes: by the name of a node, those of its outputs.
    """

    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[tuple[int, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class OptimizedStep:
    """What Grappler makes of a traced step, as it comes from there.

    Attributes:
        traced: the step.
        called: what Grappler got.
        definition: what it gave.
    """

    traced: TracedStep
    called: CalledStep
    definition: graph_pb2.GraphDef


def optimized_step(
    graph: tf_func_graph.FuncGraph | TracedStep, handles: Mapping[str, Variable], device: str
) -> OptimizedStep:
    """What Grappler makes of a traced step. It holds no lock of Python's, so it can be at work beside other things.

    Args:
        graph: a traced function, which is left as it is.
        handles: name of a placeholder for a captured variable, to the variable.
        device: kind of the device it is placed on, `"CPU"` or `"GPU"`.
    """
    traced = graph if isinstance(graph, TracedStep) else traced_step(graph)
    called = called_step(traced, handles)
    return OptimizedStep(traced, called, _optimized(called, device))


def step_graph(
    step: OptimizedStep, handles: Mapping[str, Variable], batch_size: int, sizes: Sizes | None = None
) -> StepGraph:
    """An optimized step as plain nodes, with every static shape restored.

    Args:
        step: what Grappler made of it.
        handles: name of a placeholder for a captured variable, to the variable.
        batch_size: what a first dimension that tracing did not find out is taken for.
        sizes: what decides about sizes that tracing did not find out, as far as it is known.
    """
    traced, called = step.traced, step.called
    optimized, fetched = step_of_optimized(step.definition, called)
    # What tracing found out about shapes and Grappler will not find again: what comes out of lookups, say.
    shapes = {**_traced_shapes(traced.definition.node), **called.shapes}
    for node in optimized.node:
        if node.name in handles:
            _make_handle(node, handles[node.name])
        elif node.op == "_Arg":
            _make_placeholder(node, next(iter(shapes.get(node.name, ())), None))
    _see_through(optimized.node)
    _fold_shapes(optimized.node, handles)
    graph = _read(optimized, list(optimized.node), handles, fetched, shapes, batch_size, sizes)
    graph.held = {index for index, node in enumerate(graph.nodes) if node.name in traced.captured}
    graph.fed = {index for index, node in enumerate(graph.nodes) if node.name in traced.fed}
    names = {index: graph.nodes[index].name for index in graph.held}
    graph.values = {index: traced.values[name] for index, name in names.items() if name in traced.values}
    return graph


def optimized_graph(
    graph: tf_func_graph.FuncGraph | TracedStep, handles: Mapping[str, Variable], device: str, batch_size: int
) -> StepGraph:
    """What Grappler makes of a traced step, as plain nodes; see `optimized_step` and `step_graph`."""
    return step_graph(optimized_step(graph, handles, device), handles, batch_size)


def traced_graph(graph: tf.Graph) -> StepGraph:
    """A graph with the ops and shapes that it has, nothing of it inferred anew; for looking at its nodes only."""
    operations = graph.get_operations()
    index = {op.name: number for number, op in enumerate(operations)}
    nodes = [
        Node(
            name=op.name,
            op=op.type,
            inputs=[(index[tensor.op.name], tensor.value_index) for tensor in op.inputs],
            control_inputs=[],
            outputs=[_output(tensor.dtype, tensor.shape) for tensor in op.outputs],
            attributes=op.node_def.attr,
        )
        for op in operations
    ]
    return StepGraph(nodes=nodes, variable_of={}, fetches=[], unknown=[])


def _optimized(called: CalledStep, device: str) -> graph_pb2.GraphDef:
    meta = meta_graph_pb2.MetaGraphDef(graph_def=called.definition)
    for node in meta.graph_def.node:
        # Grappler fuses only what it knows to be placed on a device whose kernels can.
        node.device = _DEVICE_NAME.format(device)
    meta.collection_def["train_op"].node_list.value.extend(called.kept)
    config = config_pb2.ConfigProto()
    rewriting = config.graph_options.rewrite_options
    # Functions are optimized however small they are; the optimizer's own default leaves small graphs alone.
    rewriting.min_graph_nodes = -1
    cluster = None
    if device == CPU:
        # It splits sums of many tensors where it thinks that a step takes more than four fifths of the device.
        cluster = tf_cluster.Cluster(devices=[_cpu()])
    else:
        # How large a GPU is, is not known here; in a run sums are split only in a step that nearly fills it.
        rewriting.memory_optimization = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    if not tf.config.list_physical_devices("GPU"):
        # It changes nothing then, but works out every shape before it finds that out.
        rewriting.layout_optimizer = rewriter_config_pb2.RewriterConfig.OFF
    return tf_optimizer.OptimizeGraph(config, meta, cluster=cluster)


def _cpu() -> device_properties_pb2.NamedDevice:
    """The CPU as the runtime describes it to Grappler."""
    properties = device_properties_pb2.DeviceProperties(type=CPU, memory_size=_CPU_BYTES)
    return device_properties_pb2.NamedDevice(name=_DEVICE_NAME.format(CPU), properties=properties)


def _make_handle(node: node_def_pb2.NodeDef, variable: Variable) -> None:
    # A captured variable is a placeholder of unknown shape; as a handle op it gives its readers their shapes.
    node.op = "VarHandleOp"
    node.attr.clear()
    node.attr["dtype"].type = tf.as_dtype(variable.dtype).as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tf.TensorShape(variable.shape).as_proto())
    node.attr["shared_name"].s = node.name.encode()


def _make_placeholder(node: node_def_pb2.NodeDef, shape: tensor_shape_pb2.TensorShapeProto | None) -> None:
    dtype = node.attr["T"].type
    shape = tf.TensorShape(None).as_proto() if shape is None else shape
    node.op = "Placeholder"
    node.attr.clear()
    node.attr["dtype"].type = dtype
    node.attr["shape"].shape.CopyFrom(shape)


def _see_through(nodes: Sequence[node_def_pb2.NodeDef]) -> None:
    """Makes what reads a variable's handle that an inlined call passed on read the handle itself, later."""
    passed_on: dict[str, str] = {}
    for node in nodes:
        if node.op == "IdentityN":
            types: Sequence[int] = node.attr["T"].list.type
        elif node.op == "Identity":
            types = [node.attr["T"].type]
        else:
            continue
        for output, dtype in enumerate(types):
            if dtype == types_pb2.DT_RESOURCE:
                passed_on[f"{node.name}:{output}"] = _with_output(node.input[output])
    for node in nodes:
        for number, name in enumerate(list(node.input)):
            if name.startswith("^"):
                continue
            source = _with_output(name)
            if source not in passed_on:
                continue
            node.input.append(f"^{source.rpartition(':')[0]}")
            while source in passed_on:
                source = passed_on[source]
            node.input[number] = source.removesuffix(":0")


def _with_output(name: str) -> str:
    return name if ":" in name else f"{name}:0"


def _fold_shapes(nodes: Sequence[node_def_pb2.NodeDef], handles: Mapping[str, Variable]) -> None:
    """Makes the shapes of variables, which their handles know, constants; zeros like them then have a known size.

    A run asks the handles in every step, so nothing that depends on them is constant there, and when zeros are made for
    a sum of gradients hangs on when it does: `ASKED` marks them, and reading the graph undoes it.
    """
    passed_on = {node.name: node.input[0].partition(":")[0] for node in nodes if node.op in PASSING}
    for node in nodes:
        if node.op != "VariableShape":
            continue
        handle = node.input[0].partition(":")[0]
        while handle in passed_on:
            handle = passed_on[handle]
        if handle not in handles:
            continue
        dtype = node.attr["out_type"].type or tf.int32.as_datatype_enum
        value = tf.make_tensor_proto(np.array(handles[handle].shape), dtype)
        asked, *controls = node.input
        node.op = "Const"
        del node.input[:]
        node.input.extend(controls)
        node.attr.clear()
        node.attr["dtype"].type = dtype
        node.attr["value"].tensor.CopyFrom(value)
        node.attr[ASKED].s = asked.encode()


def _function_graph(
    library: Mapping[str, function_pb2.FunctionDef],
    name: str,
    shapes: Sequence[tuple[int, ...] | None],
    variables: Sequence[Variable | None],
) -> StepGraph:
    function = library[name]
    known_functions = graph_pb2.GraphDef()
    known_functions.library.function.extend(library.values())
    with tf.Graph().as_default():
        # The functions that this one calls are looked up in the graph at hand; their own may be gone.
        tf.import_graph_def(known_functions, name="")
        definition, flat_names = function_def_to_graph.function_def_to_graph_def(function)
    arguments = [argument.name for argument in function.signature.input_arg]
    known = {name: shape for name, shape in zip(arguments, shapes, strict=True) if shape is not None}
    handles = {name: variable for name, variable in zip(arguments, variables, strict=True) if variable is not None}
    for node in definition.node:
        if node.name in handles:
            _make_handle(node, handles[node.name])
        elif node.name in known:
            node.attr["shape"].shape.CopyFrom(tf.TensorShape(known[node.name]).as_proto())
    definition.library.function.extend(library.values())
    traced = _traced_shapes(definition.node)
    # Its results are read by nodes that hold on to them when what it calls is taken apart.
    for output in function.signature.output_arg:
        result = definition.node.add(name=f"result/{output.name}", op="Identity")
        result.input.append(flat_names[function.ret[output.name]])
        result.attr["T"].type = output.type
    fetched = [f"result/{output.name}" for output in function.signature.output_arg]
    definition, inner = lowered(definition, 0)
    traced.update(inner)
    _see_through(definition.node)
    _fold_shapes(definition.node, handles)
    graph = _read(definition, list(definition.node), handles, fetched, traced)
    index = {node.name: number for number, node in enumerate(graph.nodes)}
    graph.arguments = [index[argument] for argument in arguments]
    return graph


def _read(
    definition: graph_pb2.GraphDef,
    ordered: Sequence[node_def_pb2.NodeDef],
    handles: Mapping[str, Variable],
    fetched: Sequence[str],
    traced: Mapping[str, Sequence[tensor_shape_pb2.TensorShapeProto]],
    batch_size: int | None = None,
    sizes: Sizes | None = None,
) -> StepGraph:
    for node in (*definition.node, *(node for function in definition.library.function for node in function.node_def)):
        # Colocation decides nothing on one device, and may name nodes that were optimized away.
        node.attr.pop("_class", None)

    def known(name: str, output: int, inferred: tf.TensorShape) -> tf.TensorShape:
        shapes = traced.get(name, ())
        return _merged(inferred, shapes[output] if output < len(shapes) else None)

    def guessed(name: str, output: int, inferred: tf.TensorShape) -> tf.TensorShape:
        shape = known(name, output, inferred)
        return tf.TensorShape([batch_size, *shape[1:]]) if batch_size is not None and _lacks_batch(shape) else shape

    sizes = sizes or Sizes()
    plain = _with_values(_without_frames(definition), sizes.values)
    graph, of_any_size = bounded(plain, sizes.shapes, known, guessed)
    index = {node.name: position for position, node in enumerate(ordered)}
    nodes: list[Node] = []
    unknown: list[str] = []
    assumed: list[str] = []
    for node in ordered:
        made = graph.get_operation_by_name(node.name).outputs
        shapes = [known(node.name, number, tensor.shape) for number, tensor in enumerate(made)]
        # What only passes a tensor on has none of its own.
        has_own = node.op not in PASSING and not node.op.startswith("Identity")
        if batch_size is not None and any(_lacks_batch(shape) for shape in shapes):
            if has_own:
                assumed.append(node.name)
            shapes = [[batch_size, *shape[1:]] if _lacks_batch(shape) else shape for shape in shapes]
        outputs = [_output(tensor.dtype, tf.TensorShape(shape)) for tensor, shape in zip(made, shapes, strict=True)]
        without_size = ("resource", "variant", "string")
        if has_own and any(one.shape is None and one.dtype not in without_size for one in outputs):
            unknown.append(node.name)
        data = [name for name in node.input if not name.startswith("^")]
        asked = node.attr[ASKED].s.decode() if ASKED in node.attr else ""
        nodes.append(
            Node(
                name=node.name,
                op="VariableShape" if asked else node.op,
                inputs=[_source(name, index) for name in ([asked] if asked else data)],
                control_inputs=[index[name[1:]] for name in node.input if name.startswith("^")],
                outputs=outputs,
                attributes=node.attr,
            )
        )
    return StepGraph(
        nodes=nodes,
        variable_of=_passed_on({index[name]: one for name, one in handles.items() if name in index}, nodes),
        fetches=[_source(name, index) for name in fetched],
        unknown=unknown,
        assumed=assumed,
        bounded=list(of_any_size),
        library={function.signature.name: function for function in definition.library.function},
    )


def _without_frames(definition: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
    """The same without cycles, so that TensorFlow infers all shapes from what loops begin with."""
    if not any(node.op in PASSING for node in definition.node):
        return definition
    plain = graph_pb2.GraphDef()
    plain.CopyFrom(definition)
    following = {node.name for node in plain.node if node.op == "NextIteration"}
    for node in plain.node:
        if node.op in ("Enter", "Exit", "NextIteration", "LoopCond"):
            dtype = types_pb2.DT_BOOL if node.op == "LoopCond" else node.attr["T"].type
            node.op = "Identity"
            node.attr.clear()
            node.attr["T"].type = dtype
        elif node.op == "Merge":
            data = [name for name in node.input if not name.startswith("^")]
            first = next(name for name in data if name not in following)
            for number, name in enumerate(data):
                if name in following:
                    node.input[number] = first
    return plain


def _with_values(definition: graph_pb2.GraphDef, values: Mapping[str, np.ndarray]) -> graph_pb2.GraphDef:
    """The same with constants in place of what is known, so that TensorFlow infers the shapes that depend on it."""
    if not values:
        return definition
    made = graph_pb2.GraphDef()
    made.CopyFrom(definition)
    for node in made.node:
        value = values.get(node.name)
        if value is not None:
            node.op = "Const"
            del node.input[:]
            node.attr.clear()
            node.attr["dtype"].type = tf.as_dtype(value.dtype).as_datatype_enum
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
    return made


def _passed_on(variables: dict[int, Variable], nodes: Sequence[Node]) -> dict[int, Variable]:
    """`variables` by the nodes that pass their handles on, too."""
    while True:
        further = {
            index: variables[node.inputs[0][0]]
            for index, node in enumerate(nodes)
            if index not in variables and node.op in PASSING and node.inputs[0][0] in variables
        }
        if not further:
            return variables
        variables |= further


def _source(name: str, index: Mapping[str, int]) -> tuple[int, int]:
    node, _, output = name.partition(":")
    return index[node], int(output or 0)


def _traced_shapes(
    nodes: Iterable[node_def_pb2.NodeDef],
) -> dict[str, Sequence[tensor_shape_pb2.TensorShapeProto]]:
    return {node.name: list(node.attr["_output_shapes"].list.shape) for node in nodes if "_output_shapes" in node.attr}


def _merged(inferred: tf.TensorShape, traced: tensor_shape_pb2.TensorShapeProto | None) -> tf.TensorShape:
    # What a list in a loop holds, say, was known when the loop was traced, and is not to be inferred again.
    if traced is None or inferred.is_fully_defined():
        return inferred
    known = tf.TensorShape(traced)
    return inferred.merge_with(known) if inferred.is_compatible_with(known) else inferred


def _lacks_batch(shape: tf.TensorShape) -> bool:
    """Whether the first dimension, and no other, is not known."""
    return bool(shape.rank) and shape[0] is None and shape[1:].is_fully_defined()


def _output(dtype: tf.DType, shape: tf.TensorShape) -> Output:
    # A reference to a variable of the old kind is the variable's own tensor.
    dtype = dtype.base_dtype
    if not shape.is_fully_defined():
        return Output(None, dtype.name, 0)
    return Output(tuple(shape), dtype.name, size_in_bytes(shape, dtype))


def constant_value(node: Node) -> np.ndarray | None:
    """The value of a constant or of what a handle tells; None for others, and where it is only computed in the run."""
    known = (node.op == "Const" or ASKED in node.attributes) and "value" in node.attributes
    return tf.make_ndarray(node.attributes["value"].tensor) if known else None
