"""Errors that escape a function of a Keras model. Callbacks are told of none."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


class WatchedFunction:
    """Calls a function and tells of the error it raises, which goes on unchanged.

    Keras keeps the function that runs a step in an attribute of the model, and calls what it finds there. So it can be
    watched there, on the one model that is trained, without a change to Keras.

    Args:
        function: what to call. What else is asked of this object, that answers.
        tell: a method that is called with the error before it goes on. It is held weakly: who watches a model must not
            live as long as it does.
    """

    def __init__(self, function: Callable[..., Any], tell: Callable[[BaseException], None]) -> None:
        self.function = function
        self._tell = weakref.WeakMethod(tell)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.function(*args, **kwargs)
        except BaseException as error:
            tell = self._tell()
            if tell is not None:
                tell(error)
            raise

    def __getattr__(self, name: str) -> Any:
        if name in ("function", "_tell"):
            raise AttributeError(name)  # not made yet, as while it is unpickled
        return getattr(self.function, name)


def watch(model: Any, attribute: str, tell: Callable[[BaseException], None]) -> None:
    """Watches the function that `model` has in `attribute`, if it has one, until `unwatch`."""
    unwatch(model, attribute)
    function = getattr(model, attribute, None)
    if function is not None:
        setattr(model, attribute, WatchedFunction(function, tell))


def unwatch(model: Any, attribute: str) -> None:
    """Puts the function back that `watch` found."""
    function = getattr(model, attribute, None)
    if isinstance(function, WatchedFunction):
        setattr(model, attribute, function.function)
