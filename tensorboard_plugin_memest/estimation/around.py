"""What a Python function gets from around it: closures, globals, `self`, and the same of all functions it calls."""

from __future__ import annotations

import contextlib
import dis
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
from tensorflow.python.eager.polymorphic_function.tf_method_target import TfMethodTarget

from tensorboard_plugin_memest.estimation.reachable import is_library, reachable

_ABSENT = object()


def around(roots: Iterable[Any]) -> list[Any]:
    """All things that `roots`, functions among them, lead to: layers, optimizers, variables, objects, containers.

    Functions are followed into their closures, defaults, the globals and the attributes of modules that they name, and
    `self`; objects also into the methods of their classes. What belongs to Python, TensorFlow or Keras is not.
    """
    return [thing for thing in _everything(roots) if not isinstance(thing, (*_CODE, TfMethodTarget))]


@contextlib.contextmanager
def untouched_surroundings(roots: Iterable[Any]) -> Iterator[None]:
    """Restores, on leaving, the variables of closures and the globals that the functions among `roots` use."""
    functions = [thing for thing in _everything(roots) if isinstance(thing, types.FunctionType)]
    cells = [(cell, _contents(cell)) for function in functions for cell in function.__closure__ or ()]
    names = [
        (function.__globals__, name, function.__globals__.get(name, _ABSENT))
        for function in functions
        for name in _globals_named(function.__code__)
    ]
    attributes = [(function, dict(vars(function))) for function in functions]
    try:
        yield
    finally:
        for cell, value in cells:
            if _contents(cell) is not value:
                if value is _ABSENT:
                    del cell.cell_contents
                else:
                    cell.cell_contents = value
        for scope, name, value in names:
            if scope.get(name, _ABSENT) is not value:
                if value is _ABSENT:
                    del scope[name]
                else:
                    scope[name] = value
        for function, state in attributes:
            vars(function).clear()
            vars(function).update(state)


_CODE = (types.FunctionType, types.MethodType, functools.partial, Function, type)


def _everything(roots: Iterable[Any]) -> list[Any]:
    return reachable(roots, _beyond)


def _beyond(thing: Any) -> Iterable[Any] | None:
    if isinstance(thing, (tf.Variable, tf.distribute.Strategy)):
        return []
    if isinstance(thing, Function):
        return [thing.python_function]
    if isinstance(thing, TfMethodTarget):
        return [thing.target]
    if isinstance(thing, types.MethodType):
        return [thing.__self__, thing.__func__]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, types.FunctionType):
        return _parts_of_function(thing)
    if isinstance(thing, type):
        return None if _is_foreign(thing.__module__) else _methods(thing)
    if isinstance(thing, tf.Module):
        return [*vars(thing).values(), *_methods(type(thing))]
    return None if _is_foreign(type(thing).__module__) else _methods(type(thing))


def _parts_of_function(function: types.FunctionType) -> list[Any] | None:
    if _is_foreign(function.__module__ or ""):
        # A library's wrapper around a function of the user's.
        wrapped = getattr(function, "__wrapped__", None)
        return None if wrapped is None else [wrapped]
    parts = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *vars(function).values()]
    parts += [value for value in map(_contents, function.__closure__ or ()) if value is not _ABSENT]
    scope = function.__globals__
    named = _globals_named(function.__code__)
    for value in [scope[name] for name in named if name in scope]:
        if not isinstance(value, types.ModuleType):
            parts.append(value)
        elif not _is_foreign(value.__name__):
            parts += [vars(value)[name] for name in _attributes_named(function.__code__) if name in vars(value)]
    return parts


def _methods(of: type) -> list[Any]:
    methods = []
    for base in of.__mro__:
        if _is_foreign(base.__module__):
            continue
        for value in vars(base).values():
            if isinstance(value, property):
                methods.append(value.fget)
            elif isinstance(value, (staticmethod, classmethod)):
                methods.append(value.__func__)
            elif isinstance(value, (types.FunctionType, Function)):
                methods.append(value)
    return methods


def _is_foreign(module: str) -> bool:
    return module != "__main__" and (is_library(module) or module.partition(".")[0] == "keras")


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """`code` and that of all functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _named(code: types.CodeType, ops: tuple[str, ...]) -> list[str]:
    found = {
        instruction.argval: None
        for one in _codes(code)
        for instruction in dis.get_instructions(one)
        if instruction.opname in ops
    }
    return list(found)


def _globals_named(code: types.CodeType) -> list[str]:
    return _named(code, ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"))


def _attributes_named(code: types.CodeType) -> list[str]:
    return _named(code, ("LOAD_ATTR", "LOAD_METHOD"))
