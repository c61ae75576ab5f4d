"""What was made once is kept, up to a limit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Cache(Generic[V]):
    """Least recently used values go first; the newest always stays, however heavy. For several threads.

    Args:
        limit: the sum of weights to keep.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._entries: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], tuple[V, int]]) -> V:
        """The value of `key`; `make` gives it, and its weight, where there is none yet. Nothing is kept if it raises.

        Values are made one at a time: requests of one page want the same record at once, and would all make it.
        """
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
            value, weight = make()
            self._entries[key] = value, weight
            self._weight += weight
            while self._weight > self._limit and len(self._entries) > 1:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._weight -= dropped
            return value

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
