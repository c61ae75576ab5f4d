"""Python's garbage collector while a graph is made."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# Collections of the middle generation before one that goes through everything: more than an estimate has.
_NEVER = 100_000


@contextlib.contextmanager
def without_full_collections() -> Iterator[None]:
    """Inside, the collector does not go through everything that lives, only through what was made lately.

    A traced graph is some hundred objects an op, nearly all of which stay: each time their number has grown by a
    quarter, Python would go through them and all of TensorFlow for nothing.
    """
    youngest, middle, oldest = gc.get_threshold()
    gc.set_threshold(youngest, middle, max(oldest, _NEVER))
    try:
        yield
    finally:
        gc.set_threshold(youngest, middle, oldest)
