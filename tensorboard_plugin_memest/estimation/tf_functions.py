"""Leaves every `tf.function` as it was, whatever tracing calls."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

# What a function that has been called knows: its traces, what they capture, and whether it has created its variables.
_CACHES = ("_function_cache", "_function_captures")
_FIRST_CALL = ("_created_variables", "_variable_creation_config", "_no_variable_creation_config")


@contextlib.contextmanager
def untouched_functions() -> Iterator[None]:
    """Inside, each `tf.function` of the process is as before its first call; on leaving, as it was.

    So what an estimate calls is traced anew, where its ops can be seen being made, and the user's next call does not
    meet a trace whose variables never existed.
    """
    before = [(function, dict(vars(function))) for function in _functions()]
    # Methods get a function of their own for each instance, which a class's function remembers.
    methods = [(function, dict(function._descriptor_cache)) for function, _ in before]
    for function, state in before:
        vars(function).update({name: type(state[name])() for name in _CACHES})
        vars(function).update(dict.fromkeys(_FIRST_CALL))
    try:
        yield
    finally:
        for function, state in before:
            vars(function).clear()
            vars(function).update(state)
        for function, known in methods:
            for instance in set(function._descriptor_cache) - set(known):
                del function._descriptor_cache[instance]


def _functions() -> list[Any]:
    # The garbage collector knows them all, wherever they hide. Of what else it knows, some things may still be being
    # made, so that nothing is asked of them but their type; and as they are a million, no more than whether it is one
    # of a few.
    kinds = _with_subclasses(Function)
    return [thing for thing in gc.get_objects() if type(thing) in kinds]


def _with_subclasses(kind: type[Any]) -> set[type[Any]]:
    return {kind}.union(*map(_with_subclasses, kind.__subclasses__()))
