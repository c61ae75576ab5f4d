"""What a measurement depends on, as one short text: a changed model or TensorFlow is measured again."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import types
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from benchmarks.configuration import Trained

_OWN = __name__.partition(".")[0]
# What is done to measure; raised when that changes, so that what was measured before counts no more.
_METHOD = 2


def fingerprint(trained: Trained) -> str:
    """A digest of everything that the measurement of a training depends on, the machine left out."""
    versions = [f"{name}=={metadata.version(name)}" for name in ("keras", tensorflow_distribution())]
    fields = [
        (field.name, getattr(trained, field.name))
        for field in dataclasses.fields(trained)
        if field.name not in ("name", "family")
    ]
    text = repr([_METHOD, versions, [(name, _described(value, set())) for name, value in fields]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def tensorflow_distribution() -> str:
    """The distribution that brings TensorFlow: `tensorflow`, `tensorflow-cpu` or a nightly."""
    return metadata.packages_distributions()["tensorflow"][0]


def _described(value: Any, seen: set[int]) -> Any:
    """`value` as text: functions and classes of the benchmarks by their sources and by all that these use."""
    if isinstance(value, (list, tuple)):
        return [_described(item, seen) for item in value]
    if isinstance(value, dict):
        return {key: _described(item, seen) for key, item in value.items()}
    if not isinstance(value, (type, types.FunctionType)):
        # An object's address says nothing.
        return f"{type(value).__qualname__}" if " object at 0x" in repr(value) else repr(value)
    if not value.__module__.startswith(_OWN):
        return f"{value.__module__}.{value.__qualname__}"
    if id(value) in seen:
        return value.__qualname__
    seen.add(id(value))
    return [inspect.getsource(value), [_described(used, seen) for used in _used_by(value)]]


def _used_by(value: type | types.FunctionType) -> Iterable[Any]:
    functions = [value] if isinstance(value, types.FunctionType) else _methods(value)
    for function in functions:
        around = inspect.getclosurevars(function)
        for name, found in sorted({**around.nonlocals, **around.globals}.items()):
            # Modules are told by their versions.
            if not isinstance(found, types.ModuleType):
                yield name
                yield found


def _methods(kind: type) -> list[types.FunctionType]:
    return [member for _, member in sorted(vars(kind).items()) if isinstance(member, types.FunctionType)]
