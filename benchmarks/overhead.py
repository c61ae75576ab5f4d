"""What MemoryCallback costs a step, paired: every other step of one training is measured by it.

python -m benchmarks.overhead [--steps 1500] [--milliseconds 10]

The model is made so large that a step takes about so many milliseconds. Neighbours, one with the callback and one
without, are compared, so that whatever else the machine does meets both alike; the median of their differences counts.
Beside it stands the time that passed inside the callback, which no noise of the step is in.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import memest

memest.use_gpu_allocator_on_cpu()

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks.about import about, console  # noqa: E402

# Of the time of a step, so much may be the callback's.
TARGET = 0.01
# Tracing and the first steps are no usual ones.
WARM_UP = 20


class Paired(keras.callbacks.Callback):  # type: ignore[misc]
    """Hands every other batch to another callback, and times all of them."""

    def __init__(self, measured: keras.callbacks.Callback) -> None:
        super().__init__()
        self._measured = measured
        self.seconds: list[float] = []
        self.inside: list[float] = []

    def set_model(self, model: keras.Model) -> None:
        super().set_model(model)
        self._measured.set_model(model)

    def on_train_begin(self, logs: Any = None) -> None:
        self._measured.on_train_begin(logs)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._start = self._begun = time.perf_counter()
        if batch % 2:
            self._measured.on_train_batch_begin(batch, logs)
            self._begun = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        ended = time.perf_counter()
        if batch % 2:
            self._measured.on_train_batch_end(batch, logs)
        now = time.perf_counter()
        self.seconds.append(now - self._start)
        self.inside.append(now - ended + self._begun - self._start)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._measured.on_epoch_end(epoch, logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._measured.on_train_end(logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--milliseconds", type=float, default=10.0, help="how long a step should be")
    parser.add_argument("--json", type=Path, default=Path("build/overhead.json"))
    args = parser.parse_args()
    row = measured(args.steps, args.milliseconds / 1000)
    table = Table(title=f"MemoryCallback on {args.steps // 2} pairs of steps")
    for title in (
        "step, median",
        "paired difference, median",
        "inside the callback, median",
        "99 %",
        "of a step",
        "target",
    ):
        table.add_column(title, justify="right")
    table.add_row(
        f"{1e3 * row['step']:.2f} ms",
        f"{1e6 * row['difference']:.0f} µs",
        f"{1e6 * row['inside']:.0f} µs",
        f"{1e6 * row['inside_99']:.0f} µs",
        f"{row['share']:.2%}",
        f"{TARGET:.0%}",
    )
    console().print(table)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({**about(), **row}, indent=1))


def measured(steps: int, seconds: float) -> dict[str, float]:
    """Times in seconds, and the callback's share of a step."""
    units = 256
    # A step of a dense layer takes as long as its kernel is large; the first guess is corrected once.
    units = max(16, int(units * seconds / _step_seconds(units)))
    model, data = _training(units)
    with tempfile.TemporaryDirectory() as logdir:
        paired = Paired(memest.MemoryCallback(logdir, log_model=lambda model, **arguments: None))
        model.fit(data, steps_per_epoch=WARM_UP + steps, shuffle=False, verbose=0, callbacks=[paired])
    taken, inside = paired.seconds[WARM_UP:], paired.inside[WARM_UP:]
    plain, with_callback = taken[0::2], taken[1::2]
    step = statistics.median(plain)
    difference = statistics.median(b - a for a, b in zip(plain, with_callback, strict=False))
    return {
        "step": step,
        "difference": difference,
        "inside": statistics.median(inside[1::2]),
        "inside_99": statistics.quantiles(inside[1::2], n=100)[98],
        "share": max(difference, statistics.median(inside[1::2])) / step,
    }


def _training(units: int) -> tuple[keras.Model, tf.data.Dataset]:
    layers = [keras.layers.Dense(units, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((2048,)), *layers])
    model.compile("adam", "mse", jit_compile=False)
    return model, tf.data.Dataset.from_tensors((tf.ones((32, 2048)), tf.ones((32, 1)))).repeat()


def _step_seconds(units: int) -> float:
    model, data = _training(units)
    paired = Paired(keras.callbacks.Callback())
    model.fit(data, steps_per_epoch=WARM_UP + 40, shuffle=False, verbose=0, callbacks=[paired])
    return statistics.median(paired.seconds[WARM_UP:])


if __name__ == "__main__":
    main()
