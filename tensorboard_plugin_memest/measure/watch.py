"""The functions of a Keras model that run its batches. Callbacks are told of no error, and of an end only later."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


class WatchedFunction:
    """Calls a function and tells when it has returned, and of the error it raises, which goes on unchanged.

    Keras keeps the function that runs a batch in an attribute of the model, and calls what it finds there. So it can be
    watched there, on the one model that is trained, without a change to Keras.

    Args:
        function: what to call. What else is asked of this object, that answers.
        returned: a method that is called when it has returned. It is held weakly, as the other is: who watches a model
            must not live as long as it does.
        failed: a method that is called with the error before it goes on.
    """

    def __init__(
        self, function: Callable[..., Any], returned: Callable[[], None], failed: Callable[[BaseException], None]
    ) -> None:
        self.function = function
        self._returned = weakref.WeakMethod(returned)
        self._failed = weakref.WeakMethod(failed)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            result = self.function(*args, **kwargs)
        except BaseException as error:
            failed = self._failed()
            if failed is not None:
                failed(error)
            raise
        returned = self._returned()
        if returned is not None:
            returned()
        return result

    def __getattr__(self, name: str) -> Any:
        if name in ("function", "_returned", "_failed"):
            raise AttributeError(name)  # not made yet, as while it is unpickled
        return getattr(self.function, name)


def watch(model: Any, attribute: str, returned: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
    """Watches the function that `model` has in `attribute`, if it has one, until `unwatch`; see `WatchedFunction`."""
    unwatch(model, attribute)
    function = getattr(model, attribute, None)
    if function is not None:
        setattr(model, attribute, WatchedFunction(function, returned, failed))


def unwatch(model: Any, attribute: str) -> None:
    """Puts the function back that `watch` found."""
    function = getattr(model, attribute, None)
    if isinstance(function, WatchedFunction):
        setattr(model, attribute, function.function)
