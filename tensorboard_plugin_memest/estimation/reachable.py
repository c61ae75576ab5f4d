"""Everything that a model is made of: its layers, variables, optimizers, metrics, and the objects of its user.

Keras lists a model's layers and weights, but not what else it changes while it is traced: trackers, seed generators,
compiled losses, optimizers inside optimizers, plain objects of the user's.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import keras

# Objects of these packages are values or machinery: nothing of a model's own state hides behind them.
_OPAQUE_PACKAGES = {"tensorflow", "numpy", "ml_dtypes", "jax", "jaxlib", "torch", "pandas", "h5py", "google", "tree"}
_OPAQUE_TYPES = (
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
    type,
    types.ModuleType,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
)
# Of a class's flags (Py_TPFLAGS_HEAPTYPE).
_MADE_IN_PYTHON = 1 << 9
_CONTAINERS = (list, tuple, dict, set, frozenset)


def reachable(roots: Iterable[Any], beyond: Callable[[Any], Iterable[Any] | None] | None = None) -> list[Any]:
    """`roots` and all that their attributes and containers lead to, each once, in the order of attributes.

    Containers are among them. Tensors, arrays, functions, classes and what belongs to TensorFlow or Python itself are
    left out.

    Args:
        roots: where to begin.
        beyond: what else a thing leads to. None for no more than usual; anything else takes a thing in that would be
            left out.
    """
    found: list[Any] = []
    seen: set[int] = set()
    opaque_types: set[type] = set(_OPAQUE_TYPES)
    waiting = list(roots)[::-1]
    while waiting:
        thing = waiting.pop()
        # Most of what attributes hold are values of a few types.
        opaque = type(thing) in opaque_types
        if (opaque and beyond is None) or id(thing) in seen:
            continue
        if not opaque:
            opaque = is_opaque(thing)
            if opaque and thing.__class__ is type(thing):
                opaque_types.add(type(thing))
        more = None if beyond is None else beyond(thing)
        if opaque and more is None:
            continue
        seen.add(id(thing))
        found.append(thing)
        parts = [*([] if opaque else _parts(thing)), *(more or ())]
        waiting.extend(reversed(parts))
    return found


def optimizers_of(roots: Iterable[Any]) -> list[Any]:
    """The optimizers that `roots` hold, however deep; those inside another optimizer are left out.

    Models with an own `train_step` may have several, as may models made of compiled models.
    """
    found = [thing for thing in reachable(roots) if isinstance(thing, keras.optimizers.Optimizer)]
    inner = {id(part) for optimizer in found for part in inner_optimizers(optimizer)}
    return [optimizer for optimizer in found if id(optimizer) not in inner]


def inner_optimizers(optimizer: Any) -> list[Any]:
    """The optimizers that `optimizer` itself holds, as loss scaling does."""
    inner = []
    for value in vars(optimizer).values():
        inner += [
            part
            for part in (value if isinstance(value, (list, tuple)) else [value])
            if isinstance(part, keras.optimizers.Optimizer) and part is not optimizer
        ]
    return inner


def is_opaque(thing: Any) -> bool:
    """Whether `thing` is a value or machinery, with no state of a model behind it."""
    if isinstance(thing, _OPAQUE_TYPES):
        return True
    if isinstance(thing, _CONTAINERS):
        return False
    made_by = type(thing)
    # A class in code that is executed outside of any module is said to be built in.
    is_own = made_by.__module__ == "builtins" and made_by.__flags__ & _MADE_IN_PYTHON
    return (is_library(made_by.__module__) and not is_own) or not hasattr(thing, "__dict__")


def is_library(module: str) -> bool:
    """Whether a module of that name is part of Python, TensorFlow or another package without state of a model."""
    package = module.partition(".")[0]
    return package in _OPAQUE_PACKAGES or package in sys.stdlib_module_names


def is_wrapper(thing: Any) -> bool:
    """Whether `thing` is one of TensorFlow's wrappers around a list or dict, which notices every change to that."""
    return isinstance(thing, (list, dict)) and type(thing).__module__.startswith("tensorflow.")


def _parts(thing: Any) -> Iterable[Any]:
    if is_wrapper(thing):
        # A dict's wrapper has it as `__wrapped__`, a list's as an attribute.
        return [*vars(thing).values(), getattr(thing, "__wrapped__", None)]
    if isinstance(thing, dict):
        return dict.values(thing)
    return thing if isinstance(thing, _CONTAINERS) else vars(thing).values()
