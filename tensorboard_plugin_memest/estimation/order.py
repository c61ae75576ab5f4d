"""The order in which TensorFlow's executor runs ready ops.

Source of the rules: `executor.cc` (`ScheduleReady`) and Eigen's thread pool. A node whose inputs are there is either
put in line behind the other ready nodes of the same thread, or, if its kernel counts as expensive, handed to the thread
pool unless the thread has nothing else to do. On a GPU no kernel counts as expensive.
"""

from __future__ import annotations

import bisect
import heapq
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

# Kernels that say of themselves that they are not expensive (`IsExpensive` in their sources).
INEXPENSIVE = {
    "_Arg", "_Retval", "Const", "Identity", "IdentityN", "NoOp", "Placeholder", "Reshape", "Shape", "ShapeN", "Size",
    "Rank", "Squeeze", "ExpandDims", "StopGradient", "PreventGradient", "VarHandleOp", "Merge", "Switch", "Enter",
    "_SwitchN", "Exit", "NextIteration", "LoopCond", "ConcatOffset",
}  # fmt: skip


# Kernels that finish on a thread of their own, after the pool has run out of other work.
ASYNCHRONOUS = {"IteratorGetNext", "IteratorGetNextAsOptional"}


# A kernel counts as expensive while it seems to take more cycles than so many; what it is thought to take at first, and
# how much of the next estimate the last one is.
EXPENSIVE_CYCLES = 8_000
FIRST_CYCLES = 100e6
KEPT = 0.9


class Learnt:
    """What the executor has learnt about how long kernels run, over all steps: the same kernel, the same estimate.

    A kernel of a few microseconds is taken for an expensive one some 90 times, and for a cheap one from then on. In a
    loop that is after a few steps. Source: `executor.cc` (`KernelStats`).
    """

    def __init__(self, cycles_of: Callable[[int], float]) -> None:
        """Nothing learnt yet.

        Args:
            cycles_of: about how many cycles a node's kernel really takes.
        """
        self._cycles_of = cycles_of
        self._thought: dict[int, float] = {}
        self._runs: Counter[int] = Counter()
        self.cheap: frozenset[int] = frozenset()

    def begin(self) -> None:
        """A step begins."""
        self._runs.clear()

    def ran(self, node: int) -> None:
        """A node's kernel has run."""
        self._runs[node] += 1
        self._learn(node, 1)

    def again(self, times: int = 1) -> None:
        """So many steps like the one before have run."""
        for node, runs in self._runs.items():
            self._learn(node, times * runs)

    def _learn(self, node: int, times: int) -> None:
        really = self._cycles_of(node)
        thought = really + (self._thought.get(node, FIRST_CYCLES) - really) * KEPT**times
        self._thought[node] = thought
        if (thought <= EXPENSIVE_CYCLES) != (node in self.cheap):
            self.cheap ^= {node}


class Steps(Protocol):
    """A graph that is being run: what an order drives."""

    @property
    def roots(self) -> Sequence[int]:
        """The nodes that wait for nothing."""

    def start(self, node: int) -> None:
        """A node begins: its outputs get their memory."""

    def finish(self, node: int) -> Sequence[int]:
        """A node ends: its inputs are released; returns the nodes that it made ready."""


class Order(Protocol):
    """Runs every node of a graph."""

    def run(self, steps: Steps) -> None:
        """Starts and finishes every node once, each after all it waits for."""

    def inside(self, op_of: Callable[[int], str], seconds_of: Callable[[int], float]) -> Order:
        """The order of a function's graph that is called."""

    def of_many(self, size: int, dead: Collection[int]) -> Order:
        """The order of a graph whose nodes run many times.

        Args:
            size: a node has its index for a number, and so much more each time that it runs again.
            dead: numbers under which a node does not run but only passes on that it does not.
        """


class InlineOrder:
    """First in, first out: the executor on a GPU, each kernel launched by the thread that readied it."""

    def run(self, steps: Steps) -> None:
        line = deque(steps.roots)
        while line:
            node = line.popleft()
            steps.start(node)
            line.extend(steps.finish(node))

    def inside(self, op_of: Callable[[int], str], seconds_of: Callable[[int], float]) -> InlineOrder:
        return InlineOrder()

    def of_many(self, size: int, dead: Collection[int]) -> InlineOrder:
        return InlineOrder()


class PoolOrder:
    """The executor on a CPU: cheap nodes in line, expensive ones as tasks of a pool of threads.

    A thread takes its own newest task first, then what was queued from outside, then the oldest task of another thread.
    """

    def __init__(
        self,
        threads: int,
        op_of: Callable[[int], str],
        seconds_of: Callable[[int], float],
        learnt: Learnt | None = None,
    ) -> None:
        """An order for a pool.

        Args:
            threads: number of inter-op threads, at least 1.
            op_of: type of a node, by index.
            seconds_of: about how long a node's kernel runs; with one thread it does not matter.
            learnt: what earlier steps taught, and this one will, about nodes that run many times; None for nothing.
        """
        self._learnt = learnt
        self._op_of = op_of
        self._seconds_of = seconds_of
        self._lines: list[deque[int]] = [deque() for _ in range(threads)]
        self._tasks: list[deque[int]] = [deque() for _ in range(threads)]
        self._outside: deque[int] = deque()
        self._late: deque[int] = deque()

    def inside(self, op_of: Callable[[int], str], seconds_of: Callable[[int], float]) -> PoolOrder:
        return PoolOrder(len(self._lines), op_of, seconds_of)

    def of_many(self, size: int, dead: Collection[int]) -> PoolOrder:
        op_of, seconds_of, learnt = self._op_of, self._seconds_of, self._learnt

        def kind(number: int) -> str:
            node = number % size
            return "NoOp" if number in dead or (learnt is not None and node in learnt.cheap) else op_of(node)

        def lasts(number: int) -> float:
            if number in dead:
                return 0.0
            node = number % size
            if learnt is not None and op_of(node) not in INEXPENSIVE:
                learnt.ran(node)
            return seconds_of(node)

        return PoolOrder(len(self._lines), kind, lasts)

    def run(self, steps: Steps) -> None:
        # They all follow from one node, the source, with which a thread of the pool begins.
        self._schedule(0, steps.roots)
        now = 0.0
        idle = list(range(len(self._lines)))  # in order
        running: list[tuple[float, int, int]] = []  # (end, thread, node)
        while True:
            still_idle = []
            for thread in idle:
                node = self._take(thread)
                if node is None:
                    still_idle.append(thread)
                    continue
                steps.start(node)
                heapq.heappush(running, (now + self._seconds_of(node), thread, node))
            idle = still_idle
            if running:
                now, thread, node = heapq.heappop(running)
                bisect.insort(idle, thread)
                self._schedule(thread, steps.finish(node))
            elif self._late:
                node = self._late.popleft()
                steps.start(node)
                self._outside.extend(steps.finish(node))
            else:
                return

    def _take(self, thread: int) -> int | None:
        while (node := self._next(thread)) is not None:
            if self._op_of(node) not in ASYNCHRONOUS:
                return node
            self._late.append(node)
        return None

    def _next(self, thread: int) -> int | None:
        for queue in (self._lines[thread], self._tasks[thread], self._outside):
            if queue:
                return queue.popleft()
        for other in self._tasks:
            if other:
                return other.pop()
        return None

    def _schedule(self, thread: int, ready: Sequence[int]) -> None:
        line, tasks = self._lines[thread], self._tasks[thread]
        waiting = None
        for node in ready:
            if self._op_of(node) in INEXPENSIVE:
                line.append(node)
                continue
            if waiting is not None:
                tasks.appendleft(waiting)
            waiting = node
        if waiting is not None:
            if line:
                tasks.appendleft(waiting)
            else:
                line.append(waiting)
