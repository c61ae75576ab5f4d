"""Optimizers' updates of many weights, traced for two of them and repeated for the others.

An optimizer does the same to each weight, so most of a step's ops come in copies that differ in what they read and in
their names. Keras and TensorFlow take a third of a millisecond of Python for each; making the copies directly takes a
fraction of that, and the graph is the same, op for op and name for name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.framework import func_graph as tf_func_graph
from tensorflow.python.framework import ops as tf_ops

from tensorboard_plugin_memest.estimation.deadline import check_deadline

# Updates that do to a weight what they do to any other of as many dimensions: none looks at its name or its shape.
_ALIKE = {
    optimizer.update_step
    for optimizer in (
        keras.optimizers.SGD,
        keras.optimizers.RMSprop,
        keras.optimizers.Adam,
        keras.optimizers.Adamax,
        keras.optimizers.Nadam,
        keras.optimizers.Adagrad,
        keras.optimizers.Adadelta,
        keras.optimizers.Ftrl,
        keras.optimizers.Lion,
    )
}


@dataclass(frozen=True)
class _Named:
    """A name that was made unique: in which scope, what it was made of, and whether it is taken from then on.

    A scope or a name is given as a string or as the number of the entry that made it.
    """

    scope: str | int
    name: str
    is_taken: bool


@dataclass(frozen=True)
class _Made:
    """An op that was made: the arguments of `_create_op_internal`, with inputs as roles."""

    scope: str | int
    op_type: str
    inputs: tuple[Any, ...]
    dtypes: Any
    input_types: Any
    name: str | int | None
    attributes: dict[str, Any] | None
    op_def: Any
    compute_device: bool


class RepeatingGraph(tf_func_graph.FuncGraph):  # type: ignore[misc]
    """A FuncGraph that can be told to make ops again, with other inputs."""

    _name_stack: str

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._recording: _Recording | None = None

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        scope = self._name_stack
        made: str = super().unique_name(name, mark_as_used)
        if self._recording is not None:
            self._recording.named(scope, name, mark_as_used, made)
        return made

    def _create_op_internal(
        self,
        op_type: str,
        inputs: Any,
        dtypes: Any = None,
        input_types: Any = None,
        name: str | None = None,
        attrs: Any = None,
        op_def: Any = None,
        compute_device: bool = True,
    ) -> Any:
        check_deadline()
        recording, self._recording = self._recording, None
        try:
            op = super()._create_op_internal(op_type, inputs, dtypes, input_types, name, attrs, op_def, compute_device)
        finally:
            # What an op brings along, such as the placeholder of a variable, it brings along again.
            self._recording = recording
        if recording is not None:
            recording.made(
                op, self._name_stack, op_type, inputs, dtypes, input_types, name, attrs, op_def, compute_device
            )
        return op

    def recorded(self, function: Callable[[], Any], roles: dict[int, Any]) -> list[Any] | None:
        """Calls `function` and returns what it makes; None if that cannot be repeated.

        Args:
            function: makes ops.
            roles: what is to be another one when it is repeated, by the id of each tensor.
        """
        self._recording = recording = _Recording(roles)
        try:
            function()
        finally:
            self._recording = None
        return recording.entries if recording.can_repeat else None

    def repeat(self, entries: Sequence[Any], tensors: dict[Any, Any]) -> None:
        """Makes what was recorded once more, with `tensors` in the roles."""
        made: list[Any] = []
        before = self._name_stack
        try:
            for entry in entries:
                self._name_stack = entry.scope if isinstance(entry.scope, str) else made[entry.scope]
                if isinstance(entry, _Named):
                    made.append(self.unique_name(entry.name, entry.is_taken))
                    continue
                op = self._create_op_internal(
                    entry.op_type,
                    [made[role[0]].outputs[role[1]] if type(role) is tuple else tensors[role] for role in entry.inputs],
                    entry.dtypes,
                    entry.input_types,
                    # A name that ends so is taken as it is.
                    f"{made[entry.name]}/" if isinstance(entry.name, int) else entry.name,
                    entry.attributes,
                    entry.op_def,
                    entry.compute_device,
                )
                made.append(op)
        finally:
            self._name_stack = before

    @contextlib.contextmanager
    def updates_repeated(self, optimizers: Iterable[Any]) -> Iterator[None]:
        """Inside, what `optimizers` do to weights that are alike is repeated, where they are known to do the same."""
        alike = [
            optimizer
            for optimizer in optimizers
            # A class of the user's may do anything in what an update calls.
            if type(optimizer).__module__.startswith("keras.")
            and type(optimizer).update_step in _ALIKE
            and "update_step" not in vars(optimizer)
        ]
        for optimizer in alike:
            vars(optimizer)["update_step"] = _repeating(self, optimizer)
        try:
            yield
        finally:
            for optimizer in alike:
                vars(optimizer).pop("update_step", None)


class _Recording:
    """What is made, op by op, told in a way that fits other inputs too."""

    def __init__(self, roles: dict[int, Any]) -> None:
        self.entries: list[Any] = []
        self.can_repeat = True
        self._roles = roles
        self._scopes: dict[str, int] = {}
        self._outputs: dict[int, tuple[int, int]] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def named(self, scope: str, name: str, is_taken: bool, made: str) -> None:
        self.entries.append(_Named(self._scopes.get(scope, scope), name, is_taken))
        self._scopes[made] = len(self.entries) - 1

    def made(
        self,
        op: Any,
        scope: str,
        op_type: str,
        inputs: Sequence[Any],
        dtypes: Any,
        input_types: Any,
        name: str | None,
        attributes: Any,
        op_def: Any,
        compute_device: bool,
    ) -> None:
        roles = tuple(self._outputs.get(id(tensor)) or self._roles.get(id(tensor)) for tensor in inputs)
        given: str | int | None = name
        if name and name.endswith("/"):
            given = self._scopes.get(name[:-1], -1)
        # What waits for others, or reads what nobody passed, may read something else the next time.
        if None in roles or given == -1 or op.control_inputs:
            self.can_repeat = False
        for number, tensor in enumerate(op.outputs):
            self._outputs[id(tensor)] = (len(self.entries), number)
        self._kept.append(op.outputs)
        self.entries.append(
            _Made(
                self._scopes.get(scope, scope),
                op_type,
                roles,
                dtypes,
                input_types,
                given,
                dict(attributes) if attributes else attributes,
                op_def,
                compute_device,
            )
        )


def _repeating(graph: RepeatingGraph, optimizer: Any) -> Callable[..., Any]:
    """An `update_step` of `optimizer` that makes ops again where it would make the same."""
    updates = _Updates(graph, optimizer)

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> Any:
        return updates.update(gradient, variable, learning_rate)

    return update_step


class _Updates:
    """The updates of one optimizer in one graph.

    What an update does is recorded the first time, and once more for another weight of the same kind; if it was the
    same, it is repeated from then on.
    """

    def __init__(self, graph: RepeatingGraph, optimizer: Any) -> None:
        self._graph = graph
        self._optimizer = optimizer
        self._once: dict[Any, list[Any] | None] = {}  # by kind of weight; None where two were not the same
        self._surely: dict[Any, list[Any]] = {}

    def update(self, gradient: Any, variable: Any, learning_rate: Any) -> Any:
        def really() -> Any:
            return type(self._optimizer).update_step(self._optimizer, gradient, variable, learning_rate)

        if not self._is_plain(gradient, variable, learning_rate):
            return really()
        tensors = self._tensors(gradient, variable, learning_rate)
        # What there is to read is part of it: some weights may lack a slot.
        kind = (*self._kind(gradient, variable, learning_rate), *tensors)
        if kind in self._surely:
            return self._graph.repeat(self._surely[kind], tensors)
        if kind in self._once and self._once[kind] is None:
            return really()
        entries = self._graph.recorded(really, {id(tensor): role for role, tensor in tensors.items()})
        if kind not in self._once:
            self._once[kind] = entries
        elif entries is not None and self._once[kind] == entries:
            self._surely[kind] = entries
        else:
            self._once[kind] = None
        return None

    def _kind(self, gradient: Any, variable: Any, learning_rate: Any) -> Any:
        """What decides about an update beside the tensors that it reads."""
        settings = tuple(
            value for value in vars(self._optimizer).values() if isinstance(value, (int, float, str, type(None)))
        )
        return (
            *(variable.dtype, variable.shape.rank, gradient.dtype, gradient.shape.rank),
            *(tf.is_tensor(learning_rate), learning_rate.dtype, self._graph._name_stack, settings),
        )

    def _is_plain(self, gradient: Any, variable: Any, learning_rate: Any) -> bool:
        """Whether this is an update as `fit` makes it: of a dense gradient, in the step's own graph, on no tape."""
        return (
            tf_ops.get_default_graph() is self._graph
            and tf.is_tensor(gradient)
            and not isinstance(gradient, tf.IndexedSlices)
            and getattr(gradient, "graph", None) is self._graph
            and isinstance(variable, tf.Variable)
            and (tf.is_tensor(learning_rate) or isinstance(learning_rate, keras.Variable))
            and not record.could_possibly_record()
        )

    def _tensors(self, gradient: Any, variable: Any, learning_rate: Any) -> dict[Any, Any]:
        """What an update may read, by its role: what belongs to the weight, and what all weights share."""
        position = self._optimizer._get_variable_index(variable)
        tensors: dict[Any, Any] = {}
        weights = len(self._optimizer._trainable_variables)
        for attribute, value in vars(self._optimizer).items():
            if isinstance(value, keras.Variable):
                tensors[f"{attribute} of all"] = _handle(value)
            elif isinstance(value, list) and len(value) == weights and isinstance(value[position], keras.Variable):
                tensors[attribute] = _handle(value[position])
        tensors["rate"] = learning_rate if tf.is_tensor(learning_rate) else _handle(learning_rate)
        tensors["gradient"] = gradient
        tensors["weight"] = variable.handle
        return {role: tensor for role, tensor in tensors.items() if tensor is not None}


def _handle(variable: Any) -> Any:
    value = getattr(variable, "_value", variable)
    return getattr(value, "handle", None)
