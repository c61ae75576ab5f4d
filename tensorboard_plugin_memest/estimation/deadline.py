"""A time by which estimating has to be over: what takes long looks at it and ends at once when it has come."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


class TimeIsUp(BaseException):
    """The deadline has passed. As with `KeyboardInterrupt`, the model's own code and Keras are not to handle it."""


_deadline: ContextVar[float] = ContextVar("memest_deadline", default=math.inf)


@contextlib.contextmanager
def deadline(at: float) -> Iterator[None]:
    """Inside, estimating ends with `TimeIsUp` once `time.monotonic()` has reached `at`, or an earlier one around it."""
    token = _deadline.set(min(at, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def check_deadline() -> None:
    """Ends what is being estimated if its time is up.

    Raises:
        TimeIsUp: it is.
    """
    at = _deadline.get()
    if at < math.inf and monotonic() >= at:
        raise TimeIsUp


def wait_for(answer: Future[T]) -> T:
    """What another thread makes, which goes on where the time is up before.

    Raises:
        TimeIsUp: it is.
        Exception: whatever the other thread raised.
    """
    at = _deadline.get()
    if at == math.inf:
        return answer.result()
    try:
        return answer.result(max(0.0, at - monotonic()))
    except NotYet:
        if answer.done():
            raise  # it is the other thread's own
        raise TimeIsUp from None
