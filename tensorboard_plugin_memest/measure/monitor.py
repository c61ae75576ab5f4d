"""Measures custom training loops: what MemoryCallback does for `fit`."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol

from tensorboard_plugin_memest.log.logdir import resolve_logdir
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.measure.allocator import Found, find_allocators
from tensorboard_plugin_memest.measure.batch_profiler import parse_profile_batch
from tensorboard_plugin_memest.measure.fit import MEASURING, MeasuredFit
from tensorboard_plugin_memest.measure.guard import Guard
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.measured import EVALUATE, PREDICT

_OVERLAPPED = (
    "Batches of evaluation or prediction that ran beside steps of other threads could not be told apart from these, so "
    "they are not recorded by themselves."
)
_HOW = "with memest.monitor(logdir) as m: ... with m.step(): train_step(batch)"


class StepObserver(Protocol):
    """Is told of the training steps of every monitor of this process, as a rehearsal is; see `OBSERVERS`."""

    def begin(self, estimate: Estimate | None) -> None:
        """Steps begin; `estimate` is the monitor's."""

    def end(self, steps: int) -> None:
        """So many steps are over."""


OBSERVERS: list[StepObserver] = []


def monitor(
    logdir: str | os.PathLike[str],
    *,
    estimate: Estimate | None = None,
    profile_batch: int | str | tuple[int, int] | list[int] = 0,
    allocators: Callable[[], Found] = find_allocators,
) -> Monitor:
    """Measures a training loop of your own, for TensorBoard's Memory tab:

    ```python
    with memest.monitor("runs/one") as m:
        for batch in dataset:
            with m.step():
                train_step(batch)
    ```

    It writes what `memest.MemoryCallback` writes for `fit`: the highest number of bytes in use in every step and those
    in use after it, on every device whose allocator counts, the process's resident set, profiles, and an out-of-memory
    error with its explanation before it goes on unchanged. A failure of memest itself is one warning.

    Args:
        logdir: the run's log directory; records go to its subdirectory `memest`.
        estimate: of one step, such as `memest.estimate` gives; it is logged beside, and explains crashes.
        profile_batch: step or pair of first and last step to profile, counted from 1; 0 for none. Of several workers
            that `TF_CONFIG` names the first profiles alone: in others TensorFlow's profiler may end the process.
        allocators: finds the allocators to measure; for tests and other sources of numbers.

    Raises:
        ValueError: an argument is wrong.
        TypeError: `logdir` is no path.
    """
    return Monitor(resolve_logdir(logdir), estimate, parse_profile_batch(profile_batch), allocators)


class _OfThread(threading.local):
    """What each thread has of its own: how many of its steps are open."""

    steps = 0


class Monitor:
    """What `memest.monitor` gives; see there. Its steps may come from several threads.

    Steps that overlap share the devices, so no peak is one step's alone: they are measured together, from the beginning
    of the first to the end of the last, and recorded as so many steps with one peak. A batch of evaluation or
    prediction that overlaps a step is part of what is measured then, and not recorded by itself.

    Args:
        logdir: the run's directory.
        estimate: of one step.
        profile_batches: first and last step to profile, counted from 1; None for no profile.
        allocators: finds the allocators to measure.
    """

    def __init__(
        self,
        logdir: str,
        estimate: Estimate | None,
        profile_batches: tuple[int, int] | None,
        allocators: Callable[[], Found],
    ) -> None:
        self._logdir = logdir
        self._estimate = estimate
        self._profile_batches = profile_batches
        self._allocators = allocators
        self._guard = Guard()
        self._run: MeasuredFit | None = None
        self._lock = threading.RLock()
        self._is_on = False
        self._inside = 0
        self._overlapping = 0
        self._mine = _OfThread()
        self._other_batch: object | None = None  # the one of evaluation or prediction that is measured
        self._told: BaseException | None = None

    @property
    def steps(self) -> int:
        """How many training steps were recorded."""
        return self._run.steps if self._run is not None else 0

    def __enter__(self) -> Monitor:
        if self._is_on:
            raise UsageError(f"This monitor of {self._logdir} is on already; use each one once at a time: {_HOW}.")
        self._is_on = True
        self._guard.run(MEASURING, self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_on = False
        if self._run is None:
            return
        if error is not None and error is not self._told:
            self._run.fail(error)
        self._run.end_training()

    @contextlib.contextmanager
    def step(self, steps: int = 1) -> Iterator[None]:
        """One training step, or `steps` that are not to be told apart, such as those of a `tf.function` that loops.

        A step that an error ends is recorded if it ran out of memory, and left out otherwise.

        Raises:
            ValueError: the monitor is not on, or `steps` is no number of steps.
        """
        if not self._is_on:
            raise UsageError(f"m.step() belongs inside the with block of its monitor: {_HOW}.")
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise UsageError(f"steps is how many steps run together, an integer of at least 1, not {steps!r}.")
        with self._lock:
            self._inside += 1
            self._mine.steps += 1
            if self._inside == 1:
                self._overlapping = 0
                self._give_up_other()
                if self._run is not None:
                    self._run.begin_batch(steps)
                for observer in OBSERVERS:
                    observer.begin(self._estimate)
            self._overlapping += steps
        try:
            yield
        except BaseException as error:
            with self._lock:
                self._inside -= 1
                self._mine.steps -= 1
                self._overlapping -= steps
                self._told = error
                if self._run is not None:
                    self._run.fail(error)
                self._leave()
            raise
        with self._lock:
            self._inside -= 1
            self._mine.steps -= 1
            self._leave()

    def _leave(self) -> None:
        """A thread has left its step; the last one closes the record of those that got through."""
        if self._inside:
            return
        if not self._overlapping:
            if self._run is not None:
                self._run.discard_batch()
            return
        if self._run is not None:
            self._run.end_batch(self._overlapping)
        for observer in OBSERVERS:
            observer.end(self._overlapping)

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """One batch of evaluation, recorded apart from training steps."""
        with self._other(EVALUATE):
            yield

    @contextlib.contextmanager
    def prediction(self) -> Iterator[None]:
        """One batch of prediction, recorded apart from training steps."""
        with self._other(PREDICT):
            yield

    @contextlib.contextmanager
    def _other(self, kind: str) -> Iterator[None]:
        if not self._is_on or self._mine.steps:
            raise UsageError(f"A batch of {kind} belongs inside the with block of its monitor and outside of any step.")
        if self._run is None:
            yield
            return
        mine = object()
        with self._lock:
            if self._inside or self._other_batch is not None:
                self._run.note(_OVERLAPPED)
            else:
                self._other_batch = mine
                self._run.begin_other_batch(kind, 1)
        try:
            yield
        except BaseException as error:
            with self._lock:
                self._told = error
                self._run.fail(error, kind)
                if self._other_batch is mine:
                    self._other_batch = None
                    self._run.discard_batch()
            raise
        with self._lock:
            if self._other_batch is mine:
                self._other_batch = None
                self._run.end_other_batch()

    def _give_up_other(self) -> None:
        """A step begins: a batch of evaluation or prediction that is open is measured no longer."""
        if self._other_batch is not None and self._run is not None:
            self._other_batch = None
            self._run.note(_OVERLAPPED)

    def _begin(self) -> None:
        if self._run is None:
            self._run = MeasuredFit(self._logdir, self._allocators(), self._profile_batches, self._guard)
            self._run.begin()
            if self._estimate is not None:
                self._run.log_estimate(self._log_estimate)
        else:
            self._run.begin()

    def _log_estimate(self) -> Estimate | None:
        assert self._estimate is not None
        with RunWriter(self._logdir) as writer:
            writer.write_estimate(self._estimate)
        return self._estimate
