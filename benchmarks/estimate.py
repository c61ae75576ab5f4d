"""Estimates a configuration, as a user would."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf

import memest
from benchmarks.models import CONFIGURATIONS


def estimate_of(name: str) -> Any:
    """The estimate of a configuration, for this process's threads."""
    configuration = CONFIGURATIONS[name]
    return memest.estimate(
        configuration.build,
        batch_size=configuration.batch_size,
        inputs=configuration.inputs,
        targets=configuration.targets,
    )


def estimate(name: str) -> dict[str, Any]:
    """Phases in bytes, how long it took after imports, and what it allocated; call it in a fresh process."""
    started = time.perf_counter()
    made = estimate_of(name)
    seconds = time.perf_counter() - started
    phases = {
        phase.name: {
            "peak": phase.peak_bytes,
            "range": list(phase.peak_range),
            "without_scratch": phase.peak_without_scratch_bytes,
            "requested": phase.requested_peak_bytes,
            "pool": phase.pool_bytes,
        }
        for phase in made.phases.values()
    }
    allocated = tf.config.experimental.get_memory_info("CPU:0")["peak"]
    return {"phases": phases, "seconds": seconds, "allocated": allocated, "assumptions": list(made.assumptions)}
