"""Values of tensors as an eager step asks for them in Python, where tensors are symbolic.

Eager code may print a loss, branch on it, or iterate over a tensor. What follows from constants is known; for anything
else a value stands in, which is told.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import SymbolicTensor
from tensorflow.python.framework.tensor import Tensor

from tensorboard_plugin_memest.estimation.eager import ScratchGraph
from tensorboard_plugin_memest.estimation.known import COMPARISONS
from tensorboard_plugin_memest.estimation.unrolled import MOST_ITERATIONS, known_value

_ASKED = (
    "The step asks in Python for values of tensors that only a run has; they were taken for ones, and what is compared "
    "follows from that."
)

# What Python's branches hang on, computed of what tensors are taken for.
_TRUTHS: dict[str, Callable[..., Any]] = {
    **COMPARISONS,
    "LogicalNot": np.logical_not,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "IsNan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
    "All": lambda given, _: np.all(given),
    "Any": lambda given, _: np.any(given),
}


@contextlib.contextmanager
def values_known() -> Iterator[list[str]]:
    """Inside, the symbolic tensors of an eager step that is followed have values for Python.

    Where one that is not known decides in Python, it does so at most MOST_ITERATIONS times in one place, so that loops
    end.

    Yields:
        What had to be assumed on the way, as sentences.
    """
    notes: list[str] = []
    decided: Counter[tuple[Any, int]] = Counter()  # by code and place in it

    def value_of(tensor: Any) -> Any:
        known = known_value(tensor)
        if known is not None:
            return known
        notes.append(_ASKED)
        return np.full(tensor.shape, _taken_for(tensor), tensor.dtype.as_numpy_dtype)

    def array(tensor: Any, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(value_of(tensor), dtype)

    def truth(tensor: Any) -> bool:
        if known_value(tensor) is not None:
            return bool(value_of(tensor))
        asking = sys._getframe(2)
        place = asking.f_code, asking.f_lasti
        decided[place] += 1
        return bool(value_of(tensor)) and decided[place] <= MOST_ITERATIONS

    def parts(tensor: Any) -> Iterator[Any]:
        known = known_value(tensor)
        return iter([tensor[number] for number in range(len(tensor))] if known is None else map(tf.constant, known))

    answers: dict[str, Callable[..., Any]] = {
        "__array__": array,
        "__bool__": truth,
        "__int__": lambda tensor: int(value_of(tensor)),
        "__index__": lambda tensor: operator.index(value_of(tensor).item()),
        "__float__": lambda tensor: float(value_of(tensor)),
        "__format__": lambda tensor, spec: format(value_of(tensor).item() if not tensor.shape.rank else tensor, spec),
        "__len__": lambda tensor: int(tensor.shape[0]),
        "__iter__": parts,
    }
    replaced = {"numpy": property(_numpy(value_of)), **{name: _method(name, one) for name, one in answers.items()}}
    before = {name: vars(SymbolicTensor).get(name) for name in replaced}
    for name, attribute in replaced.items():
        setattr(SymbolicTensor, name, attribute)
    try:
        yield notes
    finally:
        for name, original in before.items():
            if original is None:
                delattr(SymbolicTensor, name)
            else:
                setattr(SymbolicTensor, name, original)


def _taken_for(tensor: Any) -> Any:
    """Its value if it is known, one if it is not; a truth follows from what is compared."""
    known = known_value(tensor)
    if known is not None:
        return known
    truth = _TRUTHS.get(tensor.op.type)
    return 1 if truth is None else truth(*(_taken_for(given) for given in tensor.op.inputs))


def _numpy(value_of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def numpy(tensor: Any) -> Any:
        if not isinstance(tensor.graph, ScratchGraph):
            # Whether a tensor has this tells eager from symbolic ones.
            raise AttributeError("A symbolic tensor has no value.", name="numpy", obj=tensor)
        return lambda: value_of(tensor)

    return numpy


def _method(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    """`answer` for tensors of a step that is followed; others do as ever."""
    usual = getattr(Tensor, name, None)

    def method(tensor: Any, *args: Any) -> Any:
        if isinstance(tensor.graph, ScratchGraph):
            return answer(tensor, *args)
        if usual is None:
            raise TypeError(f"{tensor!r} is symbolic: it has no value for {name}.")
        return usual(tensor, *args)

    return method
