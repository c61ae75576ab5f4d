"""The order in which TensorFlow's executor runs ready ops.

Source of the rules: `executor.cc` (`ScheduleReady`) and Eigen's thread pool. A node whose inputs are there is either
put in line behind the other ready nodes of the same thread, or, if its kernel counts as expensive, handed to the thread
pool unless the thread has nothing else to do. On a GPU no kernel counts as expensive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

# Kernels that say of themselves that they are not expensive (`IsExpensive` in their sources).
INEXPENSIVE = {
    "_Arg", "_Retval", "Const", "Identity", "IdentityN", "NoOp", "Placeholder", "Reshape", "Shape", "ShapeN", "Size",
    "Rank", "Squeeze", "ExpandDims", "StopGradient", "PreventGradient", "VarHandleOp", "Merge", "Switch", "Enter",
    "Exit", "NextIteration", "LoopCond", "ConcatOffset", "TensorListReserve", "TensorListGetItem",
}  # fmt: skip


# Kernels that finish on a thread of their own, after the pool has run out of other work.
ASYNCHRONOUS = {"IteratorGetNext", "IteratorGetNextAsOptional"}


class Order(Protocol):
    """Decides which ready node runs next."""

    def start(self, roots: Iterable[int]) -> None:
        """Takes the nodes that wait for nothing."""

    def add(self, done: int, ready: Iterable[int]) -> None:
        """Takes the nodes that `done`, the last one run, made ready."""

    def next(self) -> int | None:
        """The node to run now; None when none is ready."""


class InlineOrder:
    """First in, first out: the executor on a GPU, where every kernel is launched by the thread that readied it."""

    def __init__(self) -> None:
        self._line: deque[int] = deque()

    def start(self, roots: Iterable[int]) -> None:
        self._line.extend(roots)

    def add(self, done: int, ready: Iterable[int]) -> None:
        self._line.extend(ready)

    def next(self) -> int | None:
        return self._line.popleft() if self._line else None


class PoolOrder:
    """One pool thread: cheap nodes in line, expensive ones as tasks of their own, the newest task first.

    Args:
        op_of: type of a node, by index.
    """

    def __init__(self, op_of: Callable[[int], str]) -> None:
        self._op_of = op_of
        self._line: deque[int] = deque()
        self._tasks: deque[int] = deque()
        self._late: deque[int] = deque()

    def start(self, roots: Iterable[int]) -> None:
        # The calling thread hands every root to the pool, which queues work from outside at the back.
        self._tasks.extend(roots)

    def add(self, done: int, ready: Iterable[int]) -> None:
        if self._op_of(done) in ASYNCHRONOUS:
            self._tasks.extend(ready)
            return
        waiting = None
        for node in ready:
            if self._op_of(node) in INEXPENSIVE:
                self._line.append(node)
                continue
            if waiting is not None:
                # The pool's own thread queues work at the front.
                self._tasks.appendleft(waiting)
            waiting = node
        if waiting is not None:
            if self._line:
                self._tasks.appendleft(waiting)
            else:
                self._line.append(waiting)

    def next(self) -> int | None:
        while self._line or self._tasks:
            node = self._line.popleft() if self._line else self._tasks.popleft()
            if self._op_of(node) not in ASYNCHRONOUS:
                return node
            self._late.append(node)
        return self._late.popleft() if self._late else None
