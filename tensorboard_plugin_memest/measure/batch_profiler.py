"""TensorFlow's profiler, on for certain batches of a training."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf


def parse_profile_batch(profile_batch: int | str | tuple[int, int] | list[int]) -> tuple[int, int] | None:
    """The first and last batch to profile, counted from 1, as `keras.callbacks.TensorBoard` takes them.

    Args:
        profile_batch: one batch, a pair of first and last, or either as text (`"10,20"`); 0 for none.

    Returns:
        First and last; None for no profile.

    Raises:
        ValueError: it is none of these.
    """
    told = (
        f"profile_batch is the batch to profile, counted from 1, or a pair (first, last); 0 for none. It is not "
        f"{profile_batch!r}."
    )
    parts: Any = profile_batch
    if isinstance(parts, str):
        try:
            parts = [int(part) for part in parts.split(",")]
        except ValueError:
            raise ValueError(told) from None
        parts = parts[0] if len(parts) == 1 else parts
    if isinstance(parts, int) and not isinstance(parts, bool):
        parts = (parts, parts)
    if not isinstance(parts, (tuple, list)) or len(parts) != 2 or not all(type(part) is int for part in parts):
        raise ValueError(told)
    first, last = parts
    if first == last == 0:
        return None
    if not 1 <= first <= last:
        raise ValueError(told)
    return first, last


class BatchProfiler:
    """Profiles the batches `first` to `last` of a run and marks each as a step.

    Args:
        logdir: where the profile goes, to its subdirectory `plugins/profile`, which is where XProf looks.
        batches: first and last batch, counted from 1; None for no profile.
    """

    def __init__(self, logdir: str | os.PathLike[str], batches: tuple[int, int] | None) -> None:
        self._logdir = os.fspath(logdir)
        self._batches = batches
        self._seen = 0
        self._is_open = False
        self._running = False
        self._marker: Any = None

    def begin(self, step: int) -> None:
        """The next batch begins; `step` is the number of its first step.

        Raises:
            tf.errors.AlreadyExistsError: another profile is running; this one is given up.
        """
        if self._batches is None:
            return
        self._seen += 1
        self._is_open = True
        if self._seen == self._batches[0] and not self._running:
            try:
                tf.profiler.experimental.start(self._logdir)
            except Exception:
                self._batches = None
                raise
            self._running = True
        if self._running:
            self._marker = tf.profiler.experimental.Trace("train", step_num=step, _r=1)
            self._marker.__enter__()

    def end(self) -> bool:
        """The batch is over. True if that ended the profile, which is on disk then."""
        self._is_open = False
        self._end_marker()
        return self._running and self._batches is not None and self._seen >= self._batches[1] and self.close()

    def discard(self) -> None:
        """The batch that has begun, if any, was none."""
        if self._is_open:
            self._is_open = False
            self._seen -= 1
            self._end_marker()

    def close(self) -> bool:
        """Ends a profile that is running. True if one was; it is on disk then."""
        if not self._running:
            return False
        self._end_marker()
        self._running = False
        self._batches = None
        tf.profiler.experimental.stop()
        return True

    def _end_marker(self) -> None:
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.__exit__(None, None, None)
