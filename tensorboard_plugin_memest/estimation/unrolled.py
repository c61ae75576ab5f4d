"""Loops, branches and functions as eager mode has them: Python calls them, one time after another.

In eager mode `tf.while_loop` is a Python loop, `tf.cond` calls one of its functions, and a `tf.TensorArray` is a Python
list of tensors; the gradient tape sees every op inside. While a graph is made they would become single ops instead. So
would a `tf.function` that the step calls; it is a graph in eager mode, too, but makes and holds much the same tensors.
And what a custom gradient needs, only the tape holds; a graph registers it for good.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
from tensorflow.python.framework import smart_cond
from tensorflow.python.ops import cond as tf_cond
from tensorflow.python.ops import custom_gradient, tensor_array_ops
from tensorflow.python.ops import while_loop as tf_while_loop

# A loop that runs more often stays one op: its ops, made one by one in Python, would take minutes.
MOST_ITERATIONS = 200


@contextlib.contextmanager
def unrolled() -> Iterator[list[str]]:
    """Inside, loops, branches and functions of a graph that is being made are followed as in eager mode.

    Yields:
        What had to be assumed on the way, as sentences.
    """
    notes: list[str] = []
    loop = tf_while_loop.while_loop

    def followed_loop(
        cond: Callable[..., Any],
        body: Callable[..., Any],
        loop_vars: Sequence[Any],
        *further: Any,
        maximum_iterations: Any = None,
        return_same_structure: bool = False,
        **named: Any,
    ) -> Any:
        count = known_value(maximum_iterations)
        if count is None or further or not 0 <= int(count) <= MOST_ITERATIONS:
            named |= {"maximum_iterations": maximum_iterations, "return_same_structure": return_same_structure}
            return loop(cond, body, loop_vars, *further, **named)
        values = list(loop_vars)
        for _ in range(int(count)):
            goes_on = known_value(cond(*values))
            if goes_on is not None and not goes_on:
                break
            returned = body(*values)
            values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
            # What counts the iterations is a number in eager mode.
            values = [_as_number(value) for value in values]
        if len(values) == 1 and not return_same_structure:
            return values[0]
        return type(loop_vars)(values) if isinstance(loop_vars, tuple) else values

    def followed_cond(pred: Any, true_fn: Any, false_fn: Any, *_: Any, **__: Any) -> Any:
        which = known_value(pred)
        if which is None:
            notes.append("Where values decide which of two branches an eager step takes, the first was followed.")
        result = true_fn() if which is None or which else false_fn()
        return result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result

    def followed_function(function: Any, *args: Any, **kwargs: Any) -> Any:
        notes.append(
            f"The step calls {function.__name__}, a tf.function; what that does was followed op by op, as the rest of "
            "the step."
        )
        return function.python_function(*args, **kwargs)

    replaced: list[tuple[Any, str, Any]] = [
        (Function, "__call__", followed_function),
        (tf_while_loop, "while_loop", followed_loop),
        (tf_cond, "cond", followed_cond),
        (tensor_array_ops, "_GraphTensorArrayV2", _ListOfTensors),
        (custom_gradient, "_graph_mode_decorator", custom_gradient._eager_mode_decorator),
    ]
    before = [getattr(module, name) for module, name, _ in replaced]
    try:
        for module, name, instead in replaced:
            setattr(module, name, instead)
        yield notes
    finally:
        for (module, name, _), original in zip(replaced, before, strict=True):
            setattr(module, name, original)


class _ListOfTensors(tensor_array_ops._EagerTensorArray):  # type: ignore[misc]
    """Eager mode's TensorArray, whose indices may be symbolic as long as their values are known."""

    def __init__(self, dtype: Any, size: Any = None, **named: Any) -> None:
        super().__init__(dtype, size=None if size is None else _index(size), **named)

    def read(self, index: Any, name: str | None = None) -> Any:
        return super().read(_index(index), name)

    def _write(self, index: Any, value: Any) -> None:
        super()._write(_index(index), value)

    def gather(self, indices: Any, name: str | None = None) -> Any:
        return super().gather(_indices(indices), name)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> Any:
        return super().scatter(_indices(indices), value, name)


def known_value(value: Any) -> Any:
    """The value of something symbolic that depends on nothing but constants, else None."""
    return smart_cond.smart_constant_value(value) if tf.is_tensor(value) else value


def _as_number(value: Any) -> Any:
    if not tf.is_tensor(value) or value.shape.rank != 0 or not value.dtype.is_integer:
        return value
    known = known_value(value)
    return value if known is None else tf.constant(known, value.dtype)


def _index(value: Any) -> int:
    known = known_value(value)
    if known is None:
        raise ValueError(f"The place in a TensorArray is not known before the run: {value!r}.")
    return int(known)


def _indices(value: Any) -> list[int]:
    known = known_value(value)
    if known is None:
        raise ValueError(f"The places in a TensorArray are not known before the run: {value!r}.")
    return [int(one) for one in known]
