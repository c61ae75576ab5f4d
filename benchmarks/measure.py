"""Trains a configuration for some steps as `fit` does, and tells what its allocator counted."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.data import batch_of, batches_of
from benchmarks.models import CONFIGURATIONS
from tensorboard_plugin_memest.measure.alive import find_lives, scratch
from tensorboard_plugin_memest.measure.profile_files import find_profiles
from tensorboard_plugin_memest.measure.wire import Integers
from tensorboard_plugin_memest.measure.xplane import MemoryEvents, Profile, read_xplane

DEVICE = "CPU:0"


def measure(name: str, steps: int, profiles_first: bool) -> dict[str, Any]:
    """Peaks of one training; call it in a fresh process.

    Args:
        name: of a configuration.
        steps: how many steps to take the peaks of, the first included; as many later ones are taken again under the
            profiler, which tells scratch from the rest, but slows them.
        profiles_first: whether to profile the first step.

    Returns:
        Bytes: `build`, `steps` (the first and later ones), `profiled` (later steps, each its peak and its peak without
        scratch), `first_profiled` (the same of the first step, or None); and `seconds`, of each of `steps`.
    """
    configuration = CONFIGURATIONS[name]
    _reset()
    model = configuration.build()
    build_peak = statistics()["peak"]
    train, fed = prepared(configuration, model)
    peaks, seconds = [], []
    first_profiled = None
    for step in range(steps):
        _reset()
        started = time.perf_counter()
        if step == 0 and profiles_first:
            with profiled() as found:
                _step(train, 0)
            first_profiled = _without_scratch(found[0], fed)[0]
        else:
            train()
        peaks.append(statistics()["peak"] - fed)
        seconds.append(time.perf_counter() - started)
    with profiled() as found:
        for step in range(1, steps):
            _step(train, step)
    return {
        "build": build_peak,
        "steps": peaks,
        "seconds": seconds,
        "profiled": _without_scratch(found[0], fed),
        "first_profiled": first_profiled,
        "fed": fed,
    }


def prepared(configuration: Any, model: keras.Model) -> tuple[Any, int]:
    """A function that takes one training step, and the bytes that its data holds all the time."""
    before = statistics()["current"]
    batches = batches_of(batch_of(configuration, model))
    fed = statistics()["current"] - before
    model.make_train_function()
    return lambda: model.train_function(batches), fed


def statistics() -> dict[str, int]:
    """`current` and `peak` bytes of the allocator."""
    found: dict[str, int] = tf.config.experimental.get_memory_info(DEVICE)
    return found


@contextlib.contextmanager
def profiled() -> Iterator[list[Profile]]:
    """Profiles what runs inside; the profile is in the list afterwards."""
    found: list[Profile] = []
    with tempfile.TemporaryDirectory() as directory:
        options = tf.profiler.experimental.ProfilerOptions(python_tracer_level=0)
        tf.profiler.experimental.start(directory, options)
        try:
            yield found
        finally:
            tf.profiler.experimental.stop()
        found.append(read_xplane(find_profiles(directory)[0]))


def _step(train: Any, number: int) -> None:
    with tf.profiler.experimental.Trace("train", step_num=number):
        train()


def _reset() -> None:
    tf.config.experimental.reset_memory_stats(DEVICE)


def of_device(profile: Profile) -> MemoryEvents:
    """The events of the allocator that was measured."""
    return max(profile.memory, key=len)


def _without_scratch(profile: Profile, fed: int) -> list[tuple[int, int]]:
    """For each step of a profile, its peak and its peak without kernel scratch."""
    events = of_device(profile)
    bare = events.in_use - scratch_bytes(events)
    found = []
    for step in profile.steps:
        first, last = np.searchsorted(events.time_ns, (step.start_ns, step.end_ns))
        found.append((int(events.in_use[first:last].max()) - fed, int(bare[first:last].max()) - fed))
    return found


def scratch_bytes(events: MemoryEvents) -> Integers:
    """Bytes of kernel scratch alive after each event."""
    lives = find_lives(events)
    begins = scratch(events, lives)
    ends = ~events.allocates & (lives.freed >= 0) & begins[lives.freed]
    return np.cumsum(np.where(begins, events.bytes, 0) - np.where(ends, events.bytes, 0))
