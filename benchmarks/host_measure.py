"""Runs one data pipeline in a process of its own and prints, as JSON, how much its resident set rose, and the estimate.

python -m benchmarks.host_measure "founding: cache"
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

import memest
from benchmarks.host_pipelines import PIPELINES

# A consumer slower than the pipeline, so that buffers fill.
_PAUSE = 0.02
_PAUSES = 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("pipeline", choices=PIPELINES)
    args = parser.parse_args()
    prepare, build = PIPELINES[args.pipeline]
    _warm_up()
    given = prepare()
    gc.collect()
    before = resident()
    dataset = build(given)
    # What conversion left behind goes with the next op, in any program: it is the start, not the pipeline.
    tf.convert_to_tensor([1.0])
    gc.collect()
    measured = rise_of(dataset, before)
    started = time.perf_counter()
    estimate = memest.estimate_dataset(dataset)
    seconds = time.perf_counter() - started
    print(
        json.dumps(
            {"measured": measured, "predicted": estimate.peak_bytes, "slack": estimate.slack_bytes, "seconds": seconds}
        )
    )


def rise_of(dataset: Any, before: int, epochs: int = 2, most: int = 200) -> int:
    """By how much the process's resident set rises above `before` bytes while `dataset` is iterated.

    Args:
        dataset: what to iterate.
        before: resident bytes before it was made.
        epochs: how often.
        most: elements of an epoch to take, where there is no cache to be filled.
    """
    reset_peak()
    fills_a_cache = any("cache" in repr(type(one)).lower() for one in _all(dataset))
    for _ in range(epochs):
        for number, _element in enumerate(dataset):
            if number < _PAUSES and epochs > 1:
                time.sleep(_PAUSE)
            if number >= most and not fills_a_cache:
                break
    return peak() - before


def _all(dataset: Any) -> list[Any]:
    return [dataset, *(inner for before in dataset._inputs() for inner in _all(before))]


def _warm_up() -> None:
    """What TensorFlow loads at its first pipeline is none of the measured one's."""
    warm = tf.data.Dataset.range(50).map(lambda one: tf.zeros((10,)) + tf.cast(one, tf.float32))
    for _ in warm.cache().shuffle(10).batch(5).prefetch(2):
        pass
    for _ in tf.data.Dataset.from_tensor_slices(tf.zeros((10, 3))):
        pass


def resident() -> int:
    """Resident bytes of this process."""
    return _status("VmRSS")


def peak() -> int:
    """The most resident bytes since `reset_peak`."""
    return _status("VmHWM")


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
