"""Functions that stay plain Python when somebody calls them in a `tf.function`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx

F = TypeVar("F", bound=Callable[..., Any])


def plain_python(function: F) -> F:
    """Keeps AutoGraph, which rewrites what is called in a `tf.function`, away from `function` and all that it calls.

    What is traced inside is treated as if it were called outside: not as in `tf.autograph.experimental.do_not_convert`,
    under which functions that a user's model or dataset is made of would not be rewritten either.
    """

    @functools.wraps(function)
    def outside(*args: Any, **kwargs: Any) -> Any:
        with ag_ctx.ControlStatusCtx(ag_ctx.Status.UNSPECIFIED):
            return function(*args, **kwargs)

    return cast(F, tf.autograph.experimental.do_not_convert(outside))
