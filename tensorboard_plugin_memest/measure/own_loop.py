"""The steps of a training loop that nobody marks, told apart by what its optimizers count."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import keras
import tensorflow as tf

from tensorboard_plugin_memest.measure.explain import is_out_of_memory


class Listener(Protocol):
    """Is told what goes on in the loop."""

    def may_begin(self) -> None:
        """What follows may be a step, or not."""

    def applies(self) -> None:
        """It is a step: an optimizer is being applied in it, or a function traced that will do so."""

    def ended(self, steps: int) -> None:
        """It was so many steps; 0 where it belongs to the one before."""

    def failed(self, error: Exception) -> None:
        """Memory ran out in it."""


class OwnLoop:
    """Watches every optimizer and every `tf.function` of this process, while it is on.

    A step is a call of a `tf.function` in which an optimizer of Keras was applied, `train_on_batch` among them, or,
    where a loop runs eagerly, what happens from a gradient tape on until one has been applied. Of several optimizers
    the one that was applied most often counts. What is inside of a `fit` or of another loop that is counted already is
    left out: see `paused`.

    TensorFlow and Keras have no place where one could register for that, so both are wrapped; this is for a process
    that exists for nothing else.

    Args:
        listener: what is told.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._paused = 0
        self._watching = False
        self._is_open = False

    @property
    def is_in_step(self) -> bool:
        """Whether what may be a step has begun and not ended."""
        return self._is_open

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Watches while it lasts."""
        compiled = type(tf.function(lambda: None))
        with (
            _wrapped(compiled, "__call__", self._called),
            _wrapped(keras.optimizers.Optimizer, "apply", self._applied),
            _wrapped(tf.GradientTape, "__enter__", self._entered),
        ):
            yield

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What happens while it lasts is counted by somebody else."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def _called(self, call: Callable[[], Any], function: Any) -> Any:
        return call() if self._is_inside() else self._watched(call)

    def _applied(self, call: Callable[[], Any], optimizer: Any) -> Any:
        self._optimizers.add(optimizer)
        if self._is_open and not self._paused:
            self._listener.applies()
        return call() if self._is_inside() else self._watched(call)

    def _entered(self, call: Callable[[], Any], tape: Any) -> Any:
        if not self._is_inside() and not self._is_open:
            self._is_open = True
            self._listener.may_begin()
        return call()

    def _is_inside(self) -> bool:
        return bool(self._paused) or self._watching or tf.inside_function()

    def _watched(self, call: Callable[[], Any]) -> Any:
        opens = not self._is_open
        if opens:
            self._is_open = True
            self._listener.may_begin()
        before = self._counted()
        self._watching = True
        try:
            result = call()
        except Exception as error:
            if opens:
                self._is_open = False
            # Without an optimizer it was no step, and the script may well know what to do about it.
            if self._optimizers and is_out_of_memory(error):
                self._listener.failed(error)
            raise
        finally:
            self._watching = False
        after = self._counted()
        if after != before:
            self._is_open = False
            self._listener.ended(max(0, max(after.values()) - max(before.values(), default=0)))
        elif opens:
            self._is_open = False
        return result

    def _counted(self) -> dict[int, int]:
        # Under a strategy the value is a mirrored variable, which Keras' own conversion does not know.
        return {id(one): int(one.iterations.value.numpy()) for one in self._optimizers if one.built}


@contextlib.contextmanager
def _wrapped(owner: type, name: str, around: Callable[[Callable[[], Any], Any], Any]) -> Iterator[None]:
    """While it lasts, `around` gets every call of a method, and the object that it is called on."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return around(functools.partial(method, self, *args, **kwargs), self)

    setattr(owner, name, called)
    try:
        yield
    finally:
        setattr(owner, name, method)
