"""Records how variables would be created, and creates them without memory."""

from __future__ import annotations

import contextlib
import re
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

from tensorboard_plugin_memest.estimation.deadline import check_deadline
from tensorboard_plugin_memest.estimation.discard import discard_graph
from tensorboard_plugin_memest.estimation.eager import EagerRun, ScratchGraph, traced_eagerly, value_of
from tensorboard_plugin_memest.estimation.variables import size_in_bytes

_FILLING = (keras.initializers.Zeros, keras.initializers.Ones)


@dataclass(frozen=True)
class Creation:
    """A variable that was created.

    Attributes:
        handle: its resource tensor.
        name: the name it was given.
        shape: its shape, or that of its first value where it may change.
        dtype: its dtype's name.
        run: what computing its first value does to memory.
        variable: the variable itself, as long as somebody else holds it.
        moment: how many steps of what goes on around it come before it.
        value: number of the tensor made there that is its first value; None if that is computed for it alone.
    """

    handle: Any
    name: str
    shape: tuple[int, ...]
    dtype: str
    run: EagerRun
    variable: weakref.ref[Any]
    moment: int = 0
    value: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether anybody still has the variable."""
        return self.variable() is not None


class Creations:
    """All variables created inside `recorded`, in order."""

    def __init__(self, real_up_to: int = 0, around: ScratchGraph | None = None) -> None:
        """No variables yet.

        Args:
            real_up_to: bytes up to which a variable is created as ever, with a value, for those who need one.
            around: the graph in which the code runs that creates them; None where nobody notes what it makes besides.
        """
        self.all: list[Creation] = []
        self.around = around
        # By number of a variable that is gone, how many there had been when it went.
        self.gone: dict[int, int] = {}
        self._real_up_to = real_up_to
        self._fillings: dict[Any, EagerRun] = {}
        # A handle in a graph that never runs is nothing but a name; an eager one takes a little memory.
        self._handles = tf.Graph()

    @property
    def without_value(self) -> list[Creation]:
        """Those that were created without memory."""
        return [creation for creation in self.all if not hasattr(creation.handle, "numpy")]

    def done(self) -> EagerRun:
        """What the code made besides variables; of what it does from now on, nothing is noted."""
        around, self.around = self.around, None
        if around is None:
            return EagerRun()
        return EagerRun(around.run_so_far.steps[: around.now], list(around.run_so_far.made))

    def discard(self) -> None:
        """Gives up the handles; nothing can be done with them any more, nor with the variables."""
        discard_graph(self._handles)

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Inside, new variables have a shape and a handle but are never initialized, so they hold nothing."""
        with tf.variable_creator_scope(self._create):
            yield

    def _create(self, create: Callable[..., Any], **arguments: Any) -> Any:
        check_deadline()
        initial_value = arguments["initial_value"]
        dtype = arguments.get("dtype")
        moment = self.around.now if self.around is not None else 0
        value = self._number_of(initial_value)
        run = self._run(initial_value, dtype) if value is None else _taken_over(initial_value)
        # A tensor of a graph that is being traced gives no variable a value outside of it.
        is_symbolic = tf.is_tensor(initial_value) and not isinstance(initial_value, tf.__internal__.EagerTensor)
        if size_in_bytes(run.shape, run.dtype) <= self._real_up_to and not is_symbolic:
            variable = create(**arguments)
        else:
            variable = self._without_value(arguments, run)
        number = len(self.all)
        self.all.append(
            Creation(
                handle=variable.handle,
                name=variable.name.removesuffix(":0"),
                shape=tuple(variable.shape) if variable.shape.is_fully_defined() else run.shape,
                dtype=variable.dtype.name,
                run=run,
                variable=weakref.ref(variable, lambda _: self.gone.setdefault(number, len(self.all))),
                moment=moment,
                value=value,
            )
        )
        return variable

    def _number_of(self, initial_value: Any) -> int | None:
        if self.around is None:
            return None
        # An eager tensor has no graph, and what is called is no tensor.
        is_made_there = getattr(initial_value, "graph", None) is self.around
        number: int | None = self.around.number_of(initial_value) if is_made_there else None
        return number

    def _run(self, initial_value: Any, dtype: Any) -> EagerRun:
        """What computing a variable's first value does to memory."""
        if not callable(initial_value):
            run = traced_eagerly(lambda: _constant_like(initial_value, dtype))
            return replace(run, value=value_of(initial_value)) if tf.is_tensor(initial_value) else run
        filled = _filled(initial_value)
        if filled is None:
            return traced_eagerly(initial_value)
        if filled not in self._fillings:
            self._fillings[filled] = traced_eagerly(initial_value)
        return self._fillings[filled]

    def _without_value(self, arguments: dict[str, Any], run: EagerRun) -> Any:
        with self._handles.as_default():
            variable = resource_variable_ops.UninitializedVariable(
                trainable=arguments.get("trainable"),
                shape=arguments.get("shape") or run.shape,
                dtype=arguments.get("dtype") or run.dtype,
                name=_as_scope(arguments.get("name")),
            )
            for collection in self._handles.get_all_collection_keys():
                # Graphs collect their variables, and nobody could drop one any more.
                self._handles.clear_collection(collection)
        return variable


def _as_scope(name: str | None) -> str | None:
    """`name` as a graph takes it; eager variables may be called anything, such as `_table/embeddings`."""
    if name is None:
        return None
    allowed = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", name)
    return allowed if re.match(r"[A-Za-z0-9.]", allowed) else f".{allowed}"


def _filled(initial_value: Callable[[], Any]) -> tuple[type, tuple[int, ...], str] | None:
    """What a variable of Keras' is filled with, of which shape and dtype; None if its first value is no constant.

    Most variables begin as zeros or ones, slots above all, and there are few shapes of them.
    """
    code, cells = getattr(initial_value, "__code__", None), getattr(initial_value, "__closure__", None)
    if code is None or not cells or not str(initial_value.__module__).startswith("keras."):
        return None
    around = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}
    initializer, variable = around.get("initializer"), around.get("self")
    if type(initializer) not in _FILLING or not isinstance(variable, keras.Variable):
        return None
    return type(initializer), tuple(variable._shape), variable._dtype


def _taken_over(value: tf.Tensor) -> EagerRun:
    """Nothing is made for a first value that is there."""
    return EagerRun(shape=tuple(value.shape), dtype=value.dtype.name, value=value_of(value))


def _constant_like(value: Any, dtype: Any) -> tf.Tensor:
    if not tf.is_tensor(value):
        return tf.convert_to_tensor(value, dtype)
    # Only its size matters here, and a tensor of another graph could not be used in the scratch graph.
    return tf.zeros(value.shape, value.dtype)
