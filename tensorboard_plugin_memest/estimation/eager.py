"""What an eager Python function would allocate and free, found without running it.

The function is traced in a scratch graph, where its tensors are symbolic but held by the same Python references as
eager ones would be: when nobody but the graph refers to a tensor any more, eager TensorFlow would have freed it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import record
from tensorflow.python.framework import func_graph as tf_func_graph

from tensorboard_plugin_memest.estimation.graph import Output, constant_value, traced_graph
from tensorboard_plugin_memest.estimation.known import results_of
from tensorboard_plugin_memest.estimation.rules import DECIDED_BY, alias_of
from tensorboard_plugin_memest.estimation.variables import is_small, size_in_bytes

# Tensors of so many bytes are looked after at every op. Smaller ones, and what ops remember, may be found gone a few
# ops later where there are more than so many.
_LARGE = 2**16
_OFTEN = 500
# Ops that are asked for their inputs are mostly among so many last ones.
_LATELY = 64


@dataclass(frozen=True)
class Made:
    """A tensor that an op made: its op's type, shape, dtype and bytes."""

    op: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


@dataclass
class EagerRun:
    """Tensors that come and go, in order.

    Attributes:
        steps: (number of a tensor, whether it is made (True) or freed (False)).
        made: the tensors by number.
        result: number of the tensor that the function returned; None if it made none of its own.
        shape: shape of the result.
        dtype: dtype of the result.
        recipe: the same for functions that compute the same value in the same way; empty where it may differ from run
            to run, or depends on tensors from outside.
        value: the result itself, if it is small and nothing outside decides it.
    """

    steps: list[tuple[int, bool]] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    result: int | None = None
    shape: tuple[int, ...] = ()
    dtype: str = ""
    recipe: str = field(default="", compare=False)
    value: np.ndarray | None = field(default=None, compare=False)


def traced_eagerly(function: Callable[[], Any]) -> EagerRun:
    """What `function`, which returns one tensor, would do to memory if it ran eagerly.

    Raises:
        ValueError: the shape of the result is not known.
    """
    graph = ScratchGraph()
    # A tape of the caller's would hold every tensor that is made.
    with graph.as_default(), record.stop_recording():
        result = function()
        if not tf.is_tensor(result):
            result = tf.convert_to_tensor(result)
    graph.sweep()
    run = graph.run_so_far
    if not result.shape.is_fully_defined():
        raise ValueError(f"{function!r} makes a tensor of the unknown shape {result.shape}.")
    run.result = graph.number_of(result)
    run.shape = tuple(result.shape)
    run.dtype = result.dtype.name
    run.recipe = _recipe(graph, result)
    run.value = value_of(result)
    return run


def _output(tensor: Any) -> Output:
    shape = tuple(tensor.shape) if tensor.shape.is_fully_defined() else None
    return Output(shape, tensor.dtype.name, 0 if shape is None else size_in_bytes(shape, tensor.dtype))


def value_of(result: tf.Tensor) -> np.ndarray | None:
    """The value of an eager tensor, or of one that code in a scratch graph made, if it is small and known."""
    if not result.shape.is_fully_defined() or not is_small(result.shape) or result.dtype == tf.string:
        return None
    known = tf.get_static_value(result)
    return _computed(result) if known is None and isinstance(result.graph, ScratchGraph) else known


def _computed(result: tf.Tensor) -> np.ndarray | None:
    """What follows from constants through small tensors, as a constant initializer's ones times a number do."""
    looked = traced_graph(result.graph)
    found: dict[tuple[int, int], Any] = {}
    for index, node in enumerate(looked.nodes):
        if not all(output.shape is not None and is_small(output.shape) for output in node.outputs):
            continue
        value = constant_value(node)
        given = [found.get(source) for source in node.inputs]
        for output, made in enumerate([value] if value is not None else results_of(looked, index, given)):
            found[index, output] = made
        if node.name == result.op.name:
            made = found.get((index, result.value_index))
            return made if isinstance(made, np.ndarray) else None
    return None


def _recipe(graph: tf_func_graph.FuncGraph, result: tf.Tensor) -> str:
    """What a graph computes, whatever its ops are called."""
    operations = graph.get_operations()
    if graph.captures or result.graph is not graph or any(op.op_def.is_stateful for op in operations):
        return ""
    numbers = {op.name: number for number, op in enumerate(operations)}
    digest = hashlib.sha256(f"{numbers[result.op.name]}:{result.value_index}".encode())
    for op in operations:
        definition = op.node_def
        inputs = [
            (numbers[name.lstrip("^").partition(":")[0]], name.startswith("^"), name.partition(":")[2])
            for name in definition.input
        ]
        digest.update(f"{op.type} {inputs}".encode())
        for attribute in sorted(definition.attr):
            digest.update(attribute.encode() + definition.attr[attribute].SerializeToString(deterministic=True))
    return digest.hexdigest()


class ScratchGraph(tf_func_graph.FuncGraph):  # type: ignore[misc]
    """A graph that notes which of its tensors Python holds, and from when to when."""

    def __init__(self, name: str = "scratch", *more: Any) -> None:
        super().__init__(name, *more)
        self.run_so_far = EagerRun()
        self._ops_made: list[Any] = []
        # id of a tensor: the tensor, references when nobody holds it
        self._large: dict[int, tuple[Any, int]] = {}
        self._small: dict[int, tuple[Any, int]] = {}
        self._numbers: dict[int, int] = {}  # id of a tensor: number of its memory
        self._holders: dict[int, int] = {}  # number: how many live tensors share it

    def _create_op_internal(self, op_type: str, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        self.sweep(fully=False)
        op = super()._create_op_internal(op_type, inputs, *args, **kwargs)
        self._ops_made.append(op)
        self._record(op, inputs)
        return op

    def number_of(self, tensor: Any) -> int | None:
        return self._numbers.get(id(tensor))

    @property
    def now(self) -> int:
        """How many steps there have been."""
        self.sweep()
        return len(self.run_so_far.steps)

    @property
    def held(self) -> frozenset[int]:
        """Numbers of the tensors that Python holds, as far as the last sweep saw."""
        return frozenset(number for number, holders in self._holders.items() if holders)

    def sweep(self, *, fully: bool = True) -> None:
        """Notes what nobody refers to any more; of small tensors among many only now and then, unless `fully`."""
        made = len(self._ops_made)
        all_of_them = fully or made % (1 + made // _OFTEN) == 0
        for op in self._ops_made if all_of_them else self._ops_made[-_LATELY:]:
            # A cache: whoever asks an op for its inputs makes it hold them, as nothing would in eager TensorFlow.
            op._inputs_val = None
        self._sweep(self._large)
        if fully or made % (1 + len(self._small) // _OFTEN) == 0:
            self._sweep(self._small)

    def _sweep(self, alive: dict[int, tuple[Any, int]]) -> None:
        for key in list(alive):
            tensor, unheld = alive[key]
            # The counted references include this loop's own one.
            if sys.getrefcount(tensor) <= unheld:
                del alive[key]
                # An eager tensor that goes is no longer recorded, and what was kept for its gradient goes, too.
                pywrap_tfe.TFE_Py_TapeSetDeleteTrace(tensor._id)
                # What somebody has attached to it, as Keras does logits, goes with it.
                vars(tensor).clear()
                number = self._numbers[key]
                self._holders[number] -= 1
                if self._holders[number] == 0:
                    self.run_so_far.steps.append((number, False))

    def _record(self, op: Any, inputs: Any) -> None:
        # Not `op.inputs`: an op that was asked for its inputs holds them from then on.
        given = [_output(tensor) for tensor in inputs]
        numbers = [self._numbers.get(id(tensor)) for tensor in inputs]
        deciding = tf.get_static_value(inputs[DECIDED_BY[op.type]]) if op.type in DECIDED_BY else None
        position = -1
        # Not `enumerate`, which would hold the tensor, too, while its references are counted.
        for tensor in op.outputs:
            position += 1
            if not tensor.shape.is_fully_defined():
                continue
            size = size_in_bytes(tensor.shape, tensor.dtype)
            # An eager scalar that comes from Python has its value beside it, not in the allocator's memory.
            if size == 0 or (op.type == "Const" and not tensor.shape.rank):
                continue
            alias = alias_of(op.type, position, _output(tensor), given, op.get_attr, deciding)
            number = None if alias is None else numbers[alias]
            if alias is not None and number is None:
                continue  # It is a part of the batch, or a scalar.
            # What was given up already is computed anew where it is wanted again, by a gradient say.
            if number is None or not self._holders[number]:
                number = len(self.run_so_far.made)
                self.run_so_far.made.append(Made(op.type, tuple(tensor.shape), tensor.dtype.name, size))
                self.run_so_far.steps.append((number, True))
            self._numbers[id(tensor)] = number
            self._holders[number] = self._holders.get(number, 0) + 1
            # Nobody has seen the tensor yet: apart from the graph, the list of outputs stands where sweep's entry will.
            alive = self._large if size >= _LARGE else self._small
            alive[id(tensor)] = (tensor, sys.getrefcount(tensor))


class BuildingGraph(ScratchGraph):
    """The scratch graph of code that builds a model, in which variables are read without a copy."""

    def _record(self, op: Any, inputs: Any) -> None:
        if op.type != "ReadVariableOp":
            super()._record(op, inputs)
