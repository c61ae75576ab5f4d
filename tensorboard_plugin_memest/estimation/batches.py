"""A step that was traced for some batch sizes, for any other one, without running the model's Python code again.

Two traces of one model differ where the batch size went in: in shapes, in constants that are shapes, in constants such
as the divisor of a mean. What is proportional to the batch size in two traces, or to its square or its inverse, or
grows with it from an offset, is so for every batch size, unless the model's Python code decides by it. Two decisions of
TensorFlow's own are known and watched: a batch of one is broadcast, so it is never derived; and `tf.zeros` makes a
constant of fewer than a thousand elements but a `Fill` op of more.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import Message
from tensorflow.core.framework import graph_pb2, node_def_pb2, tensor_pb2

from tensorboard_plugin_memest.estimation.called import TracedStep

# `_constant_if_small` in tensorflow/python/ops/array_ops.py.
SMALL_ZEROS = 1000

# What two traces of one model always differ in.
_CHANCE = {"_gradient_op_type", "seed", "seed2"}
# Names carry numbers that differ from trace to trace.
_NUMBERS = re.compile(r"_?\d+")


class DifferentError(Exception):
    """Two traces differ in more than the batch size, or in a way that does not tell how they depend on it."""


def derived_step(traced: Mapping[int, TracedStep], batch_size: int) -> tuple[int, TracedStep] | None:
    """The step as a trace for `batch_size` would give it.

    Args:
        traced: batch size to the step as traced for it.
        batch_size: examples in the batch.

    Returns:
        (the traced batch size whose names it has, the step); None if it cannot be known without another trace.
    """
    if batch_size in traced:
        return batch_size, traced[batch_size]
    if batch_size == 1:
        return None
    sizes = list(traced)
    # Some traces may be unlike the others, that for a batch of one above all, or all below some size: those that are
    # alike are the next ones in size.
    near = sorted(sizes, key=lambda size: abs(math.log(size / batch_size)))
    choices = [sizes, *([size for size in sizes if size != other] for other in sizes), *itertools.combinations(near, 2)]
    for chosen in dict.fromkeys(tuple(choice) for choice in choices if len(choice) > 1):
        try:
            return chosen[0], _derived([traced[size] for size in chosen], _Fit(chosen, batch_size))
        except DifferentError:
            continue
    return None


def other_sizes(batch_size: int, count: int) -> list[int]:
    """More batch sizes to trace a step for: primes, so that what is derived from the size does not agree by chance."""
    primes = (number for number in itertools.count(max(7, 2 * batch_size)) if _is_prime(number))
    return list(itertools.islice(primes, count))


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


class _Fit:
    """Numbers of several traces, and what they are for another batch size."""

    def __init__(self, sizes: Sequence[int], batch_size: int) -> None:
        self.sizes = sizes
        self.batch_size = batch_size

    def whole(self, values: Sequence[int]) -> int:
        """A number of elements or the like.

        Raises:
            DifferentError: how it depends on the batch size is not known.
        """
        first, size = values[0], self.sizes[0]
        if all(value == first for value in values):
            return first
        for power in (1, 2):
            if all(value * size**power == first * own**power for value, own in zip(values, self.sizes, strict=True)):
                product = first * self.batch_size**power
                if product % size**power == 0:
                    return product // size**power
        slope, rest = divmod(values[1] - first, self.sizes[1] - size)
        offset = first - slope * size
        # Two points lie on a line anyway; one more or one less than a multiple is no chance all the same.
        on_a_line = all(value == slope * own + offset for value, own in zip(values, self.sizes, strict=True))
        if not rest and on_a_line and (len(values) > 2 or abs(offset) == 1):
            return slope * self.batch_size + offset
        raise DifferentError(f"{values} for batches of {self.sizes}")

    def real(self, values: Sequence[float]) -> float:
        """A factor or a divisor.

        Raises:
            DifferentError: how it depends on the batch size is not known.
        """
        for power in (0, 1, -1, 2, -2):
            parts = [value / float(size) ** power for value, size in zip(values, self.sizes, strict=True)]
            if np.allclose(parts, parts[0], rtol=1e-5, atol=0):
                return parts[0] * float(self.batch_size) ** power
        raise DifferentError(f"{values} for batches of {self.sizes}")


def _derived(steps: Sequence[TracedStep], fit: _Fit) -> TracedStep:
    first = steps[0]
    definitions = [step.definition for step in steps]
    places = [{node.name: place for place, node in enumerate(definition.node)} for definition in definitions]
    _require_same(
        "what the step returns", [_references(step.fetched, at) for step, at in zip(steps, places, strict=True)]
    )
    _require_same(
        "what has to run", [sorted(_references(step.kept, at)) for step, at in zip(steps, places, strict=True)]
    )
    _require_same(
        "the tensors that layers keep",
        [
            {reference: shape.SerializeToString() for reference, shape in _captured(step, at)}
            for step, at in zip(steps, places, strict=True)
        ],
    )
    made = graph_pb2.GraphDef()
    made.CopyFrom(first.definition)
    _fill_nodes(made.node, [definition.node for definition in definitions], places, fit)
    # The names of functions end with numbers that no other function of the process has, which is also their order.
    libraries = [
        sorted(definition.library.function, key=lambda function: _order(function.signature.name))
        for definition in definitions
    ]
    _require_same("the number of functions that are called", [len(library) for library in libraries])
    by_name = {function.signature.name: function for function in made.library.function}
    for functions in zip(*libraries, strict=True):
        target = by_name[functions[0].signature.name]
        places = [_places(function) for function in functions]
        _fill_nodes(target.node_def, [function.node_def for function in functions], places, fit)
        _require_same(
            "what a function returns",
            [
                _references([function.ret[output.name] for output in function.signature.output_arg], at)
                for function, at in zip(functions, places, strict=True)
            ],
        )
        _fill_field(target, functions, "signature", fit)
        _fill_field(target, functions, "attr", fit)
        _fill_field(target, functions, "arg_attr", fit)
    return replace(first, definition=made)


def _require_same(what: str, found: Sequence[Any]) -> None:
    if any(one != found[0] for one in found):
        raise DifferentError(what)


def _captured(step: TracedStep, places: Mapping[str, int]) -> list[tuple[str, Any]]:
    return list(zip(_references(list(step.captured), places), step.captured.values(), strict=True))


def _order(name: str) -> tuple[str, list[int]]:
    return _NUMBERS.sub("", name), [int(number) for number in re.findall(r"\d+", name)]


def _places(function: Any) -> dict[str, int]:
    names = [argument.name for argument in function.signature.input_arg] + [node.name for node in function.node_def]
    return {name: place for place, name in enumerate(names)}


def _references(names: Sequence[str], places: Mapping[str, int]) -> list[str]:
    """Names of nodes or of their outputs as places in the graph: other names may stand at the same place."""
    found = []
    for name in names:
        node, _, output = name.lstrip("^").partition(":")
        found.append(f"{name[: name.startswith('^')]}{places.get(node, node)}:{output}")
    return found


def _fill_nodes(targets: Any, given: Sequence[Any], places: Sequence[Mapping[str, int]], fit: _Fit) -> None:
    _require_same("the number of ops", [len(nodes) for nodes in given])
    for target, *nodes in zip(targets, *given, strict=True):
        if all(node == nodes[0] for node in nodes):
            continue
        _require_same("the type of an op", [node.op for node in nodes])
        _require_same(
            "the inputs of an op", [_references(node.input, at) for node, at in zip(nodes, places, strict=True)]
        )
        _fill_field(target, nodes, "attr", fit)
        _check_zeros(target, nodes[0])


def _check_zeros(made: node_def_pb2.NodeDef, traced: node_def_pb2.NodeDef) -> None:
    """Raises DifferentError where a trace for this batch size would have made zeros in the other way."""
    sizes = [_elements(node) for node in (made, traced)]
    if made.op == "Const":
        # Constants that are shapes have few elements, however large the batch.
        if sizes[0] >= SMALL_ZEROS > sizes[1]:
            raise DifferentError("zeros that are too many for a constant")
    elif made.op == "Fill" and sizes[0] < SMALL_ZEROS <= sizes[1]:
        raise DifferentError("zeros that are few enough for a constant")


def _elements(node: node_def_pb2.NodeDef) -> int:
    if node.op == "Const":
        return _size(node.attr["value"].tensor.tensor_shape)
    shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else ()
    return _size(shapes[0]) if shapes else 0


def _size(shape: Any) -> int:
    return int(np.prod([dimension.size for dimension in shape.dim], dtype=object))


def _fill(target: Message, messages: Sequence[Any], fit: _Fit) -> None:
    """Makes `target`, which is equal to the first of `messages`, what it is for another batch size."""
    if all(message == messages[0] for message in messages):
        return
    if isinstance(target, tensor_pb2.TensorProto):
        target.CopyFrom(_tensor(messages, fit))
        return
    for field in target.DESCRIPTOR.fields:
        _fill_field(target, messages, field.name, fit)


def _fill_field(target: Any, messages: Sequence[Any], name: str, fit: _Fit) -> None:
    values = [getattr(message, name) for message in messages]
    made: Any = getattr(target, name)
    if isinstance(made, Message):
        if len({message.HasField(name) for message in messages}) > 1:
            raise DifferentError(name)
        if messages[0].HasField(name):
            _fill(made, values, fit)
    elif isinstance(made, Mapping):
        _fill_map(made, values, fit)
    elif isinstance(made, Sequence) and not isinstance(made, (str, bytes)):
        if any(len(value) != len(made) for value in values):
            raise DifferentError(name)
        if made and isinstance(made[0], Message):
            for one, *others in zip(made, *values, strict=True):
                _fill(one, others, fit)
        else:
            scalars = [_scalar(others, fit) for others in zip(*values, strict=True)]
            target.ClearField(name)
            getattr(target, name).extend(scalars)
    elif any(value != made for value in values):
        setattr(target, name, _scalar(values, fit))


def _fill_map(made: Any, values: Sequence[Any], fit: _Fit) -> None:
    keys = [sorted(value, key=lambda key: _order(str(key))) for value in values]
    if len({len(found) for found in keys}) > 1:
        raise DifferentError("the attributes of an op")
    for names in zip(*keys, strict=True):
        _scalar(names, fit)
        if names[0] in _CHANCE:
            continue
        entries = [value[name] for value, name in zip(values, names, strict=True)]
        if isinstance(entries[0], Message):
            _fill(made[names[0]], entries, fit)
        else:
            made[names[0]] = _scalar(entries, fit)


def _scalar(values: Sequence[Any], fit: _Fit) -> Any:
    first = values[0]
    if all(value == first for value in values):
        return first
    if isinstance(first, (str, bytes)):
        names = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in values]
        if len({_NUMBERS.sub("", name) for name in names}) == 1:
            return first
        raise DifferentError(", ".join(names))
    if isinstance(first, bool):
        raise DifferentError("a switch")
    return fit.whole(values) if isinstance(first, int) else fit.real(values)


def _tensor(tensors: Sequence[tensor_pb2.TensorProto], fit: _Fit) -> tensor_pb2.TensorProto:
    """The constant for another batch size: its values depend on it, or its shape does and all values are the same."""
    arrays = [tf.make_ndarray(tensor) for tensor in tensors]
    first = arrays[0]
    if any(array.dtype != first.dtype or array.ndim != first.ndim for array in arrays):
        raise DifferentError("the type of a constant")
    if any(array.shape != first.shape for array in arrays):
        filling = {array.reshape(-1)[0].item() for array in arrays if array.size}
        if len(filling) != 1 or any((array != next(iter(filling))).any() for array in arrays):
            raise DifferentError("a constant for each example")
        shape = [fit.whole(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)]
        value = next(iter(filling))
        return tf.make_tensor_proto(value, tensors[0].dtype, shape)
    flat: list[float]
    if np.issubdtype(first.dtype, np.integer):
        flat = [fit.whole([int(value) for value in values]) for values in zip(*(a.flat for a in arrays), strict=True)]
    elif np.issubdtype(first.dtype, np.floating) or first.dtype.kind == "V":
        flat = [fit.real([float(value) for value in values]) for values in zip(*(a.flat for a in arrays), strict=True)]
    else:
        raise DifferentError("a constant that is no number")
    if np.issubdtype(first.dtype, np.integer) and any(abs(number) > np.iinfo(first.dtype).max for number in flat):
        raise DifferentError("a number that is too large for its type")
    return tf.make_tensor_proto(np.array(flat, dtype=object).astype(first.dtype).reshape(first.shape))
