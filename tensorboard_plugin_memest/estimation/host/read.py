"""Reads a `tf.data.Dataset`, without iterating it and without copying its data.

The Python objects of a dataset tell all its arguments. Its serialized graph would too, but serializing copies every
embedded array. So that graph is asked for only where Python knows nothing, as of a dataset that was made of a variant.
Functions of the user's are traced graphs already; datasets made inside one are read from its ops. TensorFlow names
arguments alike in both, so both come out the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from tensorboard_plugin_memest.estimation.host.pipeline import Body, Component, Constant, Op, Scalar, rewrite

# As many paths or texts as tell how long the others are.
_SAMPLE = 1000
_STRING_OBJECT = 24  # sizeof(tsl::tstring); up to 22 characters are stored inside it.
_STRING_INLINE = 22
_PASSES_THROUGH = {"Identity", "IdentityN", "EnsureShape", "PreventGradient", "StopGradient"}
# Ops that make new tensors; the sizes of all others follow from these.
_MAKERS = {
    "Map",
    "ParallelMap",
    "Generator",
    "TFRecord",
    "TextLine",
    "FlatMap",
    "Interleave",
    "ParallelInterleave",
    "Load",
}
_OPAQUE = {"Variant", "Dataset"}


def read_dataset(dataset: Any, sample: bool = False) -> Op:
    """The pipeline that ends in `dataset`.

    Args:
        dataset: a `tf.data.Dataset`.
        sample: make one element wherever the size of elements is known no other way.

    Raises:
        TypeError: `dataset` is no dataset that can be read.
    """
    while hasattr(dataset, "_dataset") and isinstance(dataset._dataset, tf.data.Dataset):
        dataset = dataset._dataset
    for inside in ("_impl", "_mapped_dataset"):
        if isinstance(getattr(dataset, inside, None), tf.data.Dataset):
            return read_dataset(getattr(dataset, inside), sample)
    kind = _kind(type(dataset).__name__)
    inputs = tuple(read_dataset(before, sample) for before in dataset._inputs())
    if kind in _OPAQUE and not inputs:
        return _read_serialized(dataset)
    constants = [_constant(tensor) for tensor in getattr(dataset, "_tensors", ())]
    functions = [
        value for value in vars(dataset).values() if hasattr(value, "function") and hasattr(value, "output_structure")
    ]
    body = None
    if functions and kind != "Generator":
        concrete = functions[-1].function
        captured = dict(zip(map(id, concrete.graph.internal_captures), concrete.captured_inputs, strict=False))
        body = _body(concrete.graph, captured)
        constants += [_constant(tensor) for tensor in concrete.captured_inputs if _holds_data(tensor)]
    files = vars(dataset).get("_filenames")
    if tf.is_tensor(files):
        constants.append(_constant(files))
    elif isinstance(files, tf.data.Dataset):
        inputs = (read_dataset(files, sample),)
    components = components_of(dataset.element_spec)
    if sample and kind in _MAKERS and any(map(_is_unknown, components)):
        components = _sampled(dataset) or components
        if body is not None and body.dataset is not None:
            body = replace(body, dataset=_as_seen(body.dataset, components))
    return Op(
        kind,
        inputs,
        _values(dataset, kind),
        components,
        tuple(constants),
        body,
        id(dataset),
    )


def components_of(spec: Any) -> tuple[Component, ...]:
    """The tensors that an element of `spec` is made of."""
    return tuple(_component(leaf) for leaf in tf.nest.flatten(spec))


def _is_unknown(component: Component) -> bool:
    unknown = component.shape is None or None in component.shape
    return component.dataset is None and (unknown or component.dtype == "string")


def _sampled(dataset: Any) -> tuple[Component, ...]:
    """The tensors of the first element, with the shapes they have there; empty for a dataset without elements."""
    for element in dataset.take(1):
        return tuple(_of_tensor(leaf) for leaf in tf.nest.flatten(element))
    return ()


def _as_seen(op: Op, seen: tuple[Component, ...]) -> Op:
    """The pipeline inside a function, where its elements are not batched, with the sizes of those that came out."""

    def like(one: Op) -> Op | None:
        alike = len(one.components) == len(seen) and all(
            was.shape is not None and is_now.shape is not None and len(was.shape) == len(is_now.shape)
            for was, is_now in zip(one.components, seen, strict=True)
        )
        return replace(one, components=seen) if alike and any(map(_is_unknown, one.components)) else None

    return rewrite(op, like)


def _of_tensor(tensor: Any) -> Component:
    if isinstance(tensor, tf.Tensor) and tensor.dtype != tf.string:
        return Component(tensor.dtype.name, tuple(tensor.shape.as_list()))
    if isinstance(tensor, tf.Tensor):
        values = tensor.numpy().reshape(-1).tolist() if tensor.shape.rank else [tensor.numpy()]
        # Counted as so many bytes, since the text is known.
        return Component("uint8", (round(len(values) * text_bytes(values)),))
    parts = tf.nest.flatten(tensor, expand_composites=True)
    return Component("uint8", (sum(part.shape.num_elements() * part.dtype.size for part in parts),))


def _component(spec: Any) -> Component:
    if isinstance(spec, tf.data.DatasetSpec):
        return Component("variant", (), dataset=components_of(spec.element_spec))
    dtype = getattr(spec, "dtype", tf.variant)
    shape = getattr(spec, "shape", None)
    dimensions = None if shape is None or shape.rank is None else tuple(shape.as_list())
    return Component(
        dtype.name,
        dimensions,
        ragged=isinstance(spec, tf.RaggedTensorSpec),
        sparse=isinstance(spec, tf.SparseTensorSpec),
    )


def _kind(name: str) -> str:
    """`_ShuffleDataset`, `ShuffleDatasetV3` and `ExperimentalShuffleDataset` are all a `Shuffle`."""
    return re.sub(r"^_|^Experimental|DatasetV?\d*$|Dataset$|V\d+$", "", re.sub(r"DatasetV\d+$", "Dataset", name))


def _values(dataset: Any, kind: str) -> dict[str, Scalar]:
    values = {name: value for name, value in map(_scalar, vars(dataset).items()) if value is not None}
    if kind == "Load":
        # It is in the files' metadata, which was read when the dataset was made.
        values["cardinality"] = int(dataset.cardinality())
    # As the ops name them: `_batch_size_t` and `_expected_cardinality` are `batch_size` and `cardinality`.
    return {name.lstrip("_").removeprefix("expected_").removesuffix("_t"): value for name, value in values.items()}


def _scalar(entry: tuple[str, Any]) -> tuple[str, Scalar | None]:
    name, value = entry
    if isinstance(value, (bool, int, str)):
        return name, value
    if tf.is_tensor(value) and value.shape.rank == 0 and value.dtype in (tf.int64, tf.int32, tf.bool, tf.string):
        static = tf.get_static_value(value)
        if static is not None:
            plain = static.item() if hasattr(static, "item") else static
            return name, plain.decode(errors="replace") if isinstance(plain, bytes) else plain
    return name, None


def _holds_data(tensor: Any) -> bool:
    return tensor.dtype not in (tf.resource, tf.variant)


def _constant(tensor: Any) -> Constant:
    shape = tensor.shape
    rows = shape[0] if shape.rank else 1
    count = shape.num_elements() or 0
    if tensor.dtype != tf.string:
        return Constant(tensor.dtype.name, count * tensor.dtype.size, rows or 0, id(tensor))
    static = tf.get_static_value(tf.reshape(tensor, [-1])[:_SAMPLE])
    values = [] if static is None else [value for value in static.tolist() if isinstance(value, bytes)]
    texts = tuple(value.decode(errors="replace") for value in values)
    return Constant("string", round(count * text_bytes(values)), rows or 0, id(tensor), texts)


def text_bytes(values: Sequence[bytes]) -> float:
    """What one of `values` takes on average in a tensor of strings; long ones have a block of their own."""
    if not values:
        return _STRING_OBJECT
    blocks = sum(len(value) + 17 for value in values if len(value) > _STRING_INLINE)
    return _STRING_OBJECT + blocks / len(values)


def _body(graph: Any, captured: dict[int, Any]) -> Body:
    inputs = [tensor for tensor in graph.inputs if id(tensor) not in captured]
    numbers = {id(tensor): number for number, tensor in enumerate(inputs)}
    types = frozenset(op.type for op in graph.get_operations())
    inner = None
    if len(graph.outputs) == 1 and graph.outputs[0].dtype == tf.variant:
        inner = _read_tensor(graph.outputs[0])
    return Body(
        tuple(numbers.get(id(_origin(tensor))) for tensor in graph.outputs),
        inner,
        bool(types & {"ReadFile", "WholeFileReader"}),
        any(tensor.dtype == tf.uint8 for op in graph.get_operations() for tensor in op.outputs),
        _largest_inside(graph),
    )


def _largest_inside(graph: Any) -> int:
    leaving = {id(_origin(tensor)) for tensor in graph.outputs} | {id(tensor) for tensor in graph.inputs}
    sizes = [
        (tensor.shape.num_elements() or 0) * tensor.dtype.size
        for op in graph.get_operations()
        for tensor in op.outputs
        if id(tensor) not in leaving and id(_origin(tensor)) not in leaving and _holds_data(tensor)
    ]
    return max(sizes, default=0)


def _origin(tensor: Any) -> Any:
    """Where `tensor` really comes from: ops that hand on what they get are passed over."""
    while tensor.op.type in _PASSES_THROUGH:
        tensor = tensor.op.inputs[tensor.value_index if tensor.op.type == "IdentityN" else 0]
    return tensor


def _read_tensor(tensor: Any) -> Op | None:
    """The dataset that the variant `tensor` of a graph is; None where no op of tf.data made it."""
    op = _origin(tensor).op
    if "Dataset" not in op.type:
        return None
    names = _argument_names(op)
    inputs: list[Op] = []
    constants: list[Constant] = []
    values: dict[str, Scalar] = {}
    for name, given in zip(names, op.inputs, strict=True):
        if given.dtype == tf.variant:
            before = _read_tensor(given)
            if before is not None:
                inputs.append(before)
        elif name in ("components", "filenames"):
            constants.append(_graph_constant(given))
        else:
            value = _scalar((name, given))[1]
            if value is not None:
                values[name] = value
    for name in ("sloppy", "deterministic", "reshuffle_each_iteration"):
        if name in op.node_def.attr:
            value = op.get_attr(name)
            values[name] = value.decode() if isinstance(value, bytes) else value
    return Op(
        _kind(op.type),
        tuple(inputs),
        values,
        _attribute_components(op),
        tuple(constants),
        _library_body(op),
        hash(op.name),
    )


def _argument_names(op: Any) -> list[str]:
    names: list[str] = []
    for argument in op.op_def.input_arg:
        count = 1
        if argument.number_attr:
            count = op.get_attr(argument.number_attr)
        elif argument.type_list_attr:
            count = len(op.get_attr(argument.type_list_attr))
        names += [argument.name] * count
    return names


def _graph_constant(tensor: Any) -> Constant:
    origin = _origin(tensor)
    if origin.op.type == "Const":
        shape = tensor.shape
        if tensor.dtype == tf.string:
            proto = origin.op.node_def.attr["value"].tensor
            # The graph that is read is the default one here.
            with context.eager_mode():
                array = tf.io.parse_tensor(proto.SerializeToString(), tf.string).numpy()
            values = [bytes(value) for value in array.reshape(-1)[:_SAMPLE].tolist()]
            rows = shape[0] if shape.rank else 1
            texts = tuple(value.decode(errors="replace") for value in values[:_SAMPLE])
            return Constant("string", round((shape.num_elements() or 0) * text_bytes(values)), rows, id(tensor), texts)
        return Constant(
            tensor.dtype.name,
            (shape.num_elements() or 0) * tensor.dtype.size,
            shape[0] if shape.rank else 1,
            id(tensor),
        )
    # Made while the function runs, from its argument: what it needs is counted with the elements.
    rows = tensor.shape[0] if tensor.shape.rank else 1
    return Constant(tensor.dtype.name, 0, rows or 0, id(tensor))


def _attribute_components(op: Any) -> tuple[Component, ...]:
    attributes = op.node_def.attr
    name = next((name for name in ("output_types", "Toutput_types") if name in attributes), None)
    if name is None:
        return ()
    types = op.get_attr(name)
    if "output_shapes" not in attributes:
        return tuple(Component(tf.as_dtype(one).name, ()) for one in types)
    shapes = [tf.TensorShape(shape) for shape in op.get_attr("output_shapes")]
    return tuple(
        Component(tf.as_dtype(one).name, None if shape.rank is None else tuple(shape.as_list()))
        for one, shape in zip(types, shapes, strict=True)
    )


def _library_body(op: Any) -> Body | None:
    if "f" not in op.node_def.attr:
        return None
    from tensorflow.python.framework import function_def_to_graph

    name = op.node_def.attr["f"].func.name
    graph = op.graph
    while graph is not None:
        if graph._is_function(name):
            definition = graph._get_function(name)
            definition = getattr(definition, "cached_definition", None) or definition.definition
            inner = function_def_to_graph.function_def_to_graph(definition)
            return _body(inner, {})
        graph = getattr(graph, "outer_graph", None)
    return None


def _read_serialized(dataset: Any) -> Op:
    from tensorflow.core.framework import graph_pb2

    serialized = dataset._as_serialized_graph(
        external_state_policy=tf.data.experimental.ExternalStatePolicy.IGNORE
    ).numpy()
    definition = graph_pb2.GraphDef.FromString(serialized)
    end = next(node for node in definition.node if node.op == "_Retval").input[0]
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(definition, name="")
        op = _read_tensor(graph.get_tensor_by_name(end if ":" in end else f"{end}:0"))
    if op is None:
        raise TypeError(f"{dataset!r} is no dataset that memest can read.")
    return op
