"""What MemoryCallback costs a step, paired: a third of the steps of one training are measured by it.

python -m benchmarks.overhead [--steps 6000] [--milliseconds 10]

The model is made so large that a step takes about so many milliseconds. Of every thirty steps ten have no callback, ten
a Keras callback whose hooks are empty, and ten MemoryCallback; steps that lie close together are compared, so that what
else the machine does meets all alike, and the median of their differences counts, given with half its 95 % interval:
what lies within that nobody has measured. The first two of ten are left out:
they find less of the callback in the processor's caches than a training does that has it in every step. Beside it
stands the time that passed inside the callback, which no noise of the step is in: in its hooks, and where it reads the
peak, when the model's function returns. And the processor time of the calling thread, paired as well, which a busy
machine disturbs least. The empty callback tells what Keras and a call take by themselves. MemoryCallback puts several
steps away at once and reads the resident set ten times a second, which the median does not show, so the mean stands
beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
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
# Steps that one callback has in a row, and of those the first ones that are left out.
TURN, SETTLING = 10, 2
CALLBACKS = 3
# Tracing and the first steps are no usual ones.
WARM_UP = TURN * CALLBACKS


class Empty(keras.callbacks.Callback):  # type: ignore[misc]
    """Has the hooks that MemoryCallback has in a step, and does nothing in them."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        pass

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        pass


class InTurn(keras.callbacks.Callback):  # type: ignore[misc]
    """Hands batches, ten in a row, to one of several callbacks (None for none) in turn, and times all of them."""

    def __init__(self, callbacks: Sequence[keras.callbacks.Callback | None]) -> None:
        super().__init__()
        self._callbacks = callbacks
        self.seconds: list[float] = []
        self.processor: list[float] = []
        self.inside: list[float] = []
        self._returned = self._handed_on = 0.0

    def set_model(self, model: keras.Model) -> None:
        super().set_model(model)
        for callback in filter(None, self._callbacks):
            callback.set_model(model)

    def on_train_begin(self, logs: Any = None) -> None:
        """The model's function is timed from inside and from outside of what callbacks make of it."""
        function = self.model.train_function

        def inner(iterator: Any) -> Any:
            result = function(iterator)
            self._returned = time.perf_counter()
            return result

        self.model.train_function = inner
        for callback in filter(None, self._callbacks):
            callback.on_train_begin(logs)
        self._watched = self.model.train_function

        def outer(iterator: Any) -> Any:
            result = self._watched(iterator)
            self._handed_on = time.perf_counter()
            return result

        self.model.train_function = outer

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        callback = self._callbacks[batch // TURN % len(self._callbacks)]
        self._processor = time.thread_time()
        self._start = self._begun = time.perf_counter()
        if callback is not None:
            callback.on_train_batch_begin(batch, logs)
            self._begun = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        callback = self._callbacks[batch // TURN % len(self._callbacks)]
        ended = time.perf_counter()
        if callback is not None:
            callback.on_train_batch_end(batch, logs)
        now = time.perf_counter()
        self.processor.append(time.thread_time() - self._processor)
        self.seconds.append(now - self._start)
        self.inside.append(now - ended + self._handed_on - self._returned + self._begun - self._start)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        for callback in filter(None, self._callbacks):
            callback.on_epoch_end(epoch, logs)

    def on_train_end(self, logs: Any = None) -> None:
        self.model.train_function = self._watched
        for callback in filter(None, self._callbacks):
            callback.on_train_end(logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--milliseconds", type=float, default=10.0, help="how long a step should be")
    parser.add_argument("--json", type=Path, default=Path("build/overhead.json"))
    args = parser.parse_args()
    step, rows = measured(args.steps, args.milliseconds / 1000)
    table = Table(title=f"Callbacks on {args.steps // 3} steps each of {1e3 * step:.2f} ms (median without any)")
    for title in ("callback", "paired", "processor", "inside", "mean", "99 %", "of a step", "target"):
        table.add_column(title, justify="right")
    for name, row in rows.items():
        paired = (f"{1e6 * row[key]:.0f} ± {1e6 * row[f'{key}_within']:.0f} µs" for key in ("difference", "processor"))
        times = (f"{1e6 * row[key]:.0f} µs" for key in ("inside", "inside_mean", "inside_99"))
        table.add_row(name, *paired, *times, f"{row['share']:.2%}", f"{TARGET:.0%}")
    console().print(table)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({**about(), "step": step, "callbacks": rows}, indent=1))


def measured(steps: int, seconds: float) -> tuple[float, dict[str, dict[str, float]]]:
    """The median step without a callback, and for each callback times in seconds and its share of a step."""
    units = 256
    # A step of a dense layer takes longer the larger its kernel is, but a small one is mostly something else.
    for _ in range(4):
        found = _step_seconds(units)
        if 0.85 < found / seconds < 1.15:
            break
        units = max(16, int(units * seconds / found))
    model, data = _training(units)
    with tempfile.TemporaryDirectory() as logdir:
        memory = memest.MemoryCallback(logdir, log_model=lambda model, **arguments: None)
        turns = InTurn([None, Empty(), memory])
        model.fit(
            data,
            steps_per_epoch=WARM_UP + steps - steps % (TURN * CALLBACKS),
            shuffle=False,
            verbose=0,
            callbacks=[turns],
        )
    step = statistics.median(_of_turn(turns.seconds, 0))
    rows = {}
    for turn, name in ((1, "empty"), (2, "MemoryCallback")):
        inside = _of_turn(turns.inside, turn)
        difference, within = _paired(turns.seconds, turn)
        processor, processor_within = _paired(turns.processor, turn)
        rows[name] = {
            "difference": difference,
            "difference_within": within,
            "processor": processor,
            "processor_within": processor_within,
            "inside": statistics.median(inside),
            "inside_mean": statistics.fmean(inside),
            "inside_99": statistics.quantiles(inside, n=100)[98],
            "share": max(difference, statistics.median(inside)) / step,
        }
    return step, rows


def _paired(times: list[float], turn: int) -> tuple[float, float]:
    """By how much steps with callback number `turn` take longer than those without any, and how sure that is.

    The median of pairs, and half of the interval that holds the true one in 95 of 100 cases if pairs are independent:
    the number of pairs below it is binomial.
    """
    pairs = zip(_of_turn(times, 0), _of_turn(times, turn), strict=True)
    differences = sorted(taken - plain for plain, taken in pairs)
    count = len(differences)
    aside = 0.98 * math.sqrt(count)
    low, high = (differences[min(max(0, round(at)), count - 1)] for at in (count / 2 - aside, count / 2 + aside))
    return statistics.median(differences), (high - low) / 2


def _of_turn(times: list[float], turn: int) -> list[float]:
    """The times of the steps that had callback number `turn`."""
    first = WARM_UP + TURN * turn
    starts = range(first, len(times), TURN * CALLBACKS)
    return [time for start in starts for time in times[start + SETTLING : start + TURN]]


def _training(units: int) -> tuple[keras.Model, tf.data.Dataset]:
    layers = [keras.layers.Dense(units, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((2048,)), *layers])
    model.compile("adam", "mse", jit_compile=False)
    return model, tf.data.Dataset.from_tensors((tf.ones((32, 2048)), tf.ones((32, 1)))).repeat()


def _step_seconds(units: int) -> float:
    model, data = _training(units)
    turns = InTurn([None])
    model.fit(data, steps_per_epoch=WARM_UP + 40, shuffle=False, verbose=0, callbacks=[turns])
    return statistics.median(turns.seconds[WARM_UP:])


if __name__ == "__main__":
    main()
