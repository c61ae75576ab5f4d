"""How long an estimate takes, beside Grappler's predictor and beside simply running the model.

python -m benchmarks.speed [--threads one|default] [--repeat 3] [--match PATTERN] [--no-run]

All times begin after imports. Processor time is what an estimate costs where other programs run besides. Every number
is from a fresh process; the fastest of some repetitions counts, since anything else that the machine does only makes
them longer. What takes long is not repeated. The last rows are one network of several depths: time is proportional to
the number of ops if it is the same an op.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras
from keras import layers
from rich.table import Table
from tensorflow.python.eager import context as tf_context

import memest
from benchmarks.about import about, console
from benchmarks.baselines import grappler_peak
from benchmarks.configuration import Build, Configuration, compiled
from benchmarks.measure import prepared, statistics
from benchmarks.processes import DEFAULT, ONE, ProcessError, in_process
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.training import training_of_function


def _example(dense: int) -> keras.Model:
    parts = [keras.Input((1491, 257, 1)), *(layers.Conv2D(16, 3, activation="relu") for _ in range(2))]
    parts += [layers.Flatten(), layers.Dense(dense, activation="relu"), layers.Dense(1, activation="sigmoid")]
    return compiled(keras.Sequential(parts), "adam", "binary_crossentropy", metrics=["accuracy"])


def _application(name: str, size: int) -> keras.Model:
    made = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3))
    return compiled(made, "adam", metrics=["accuracy"])


def _residual(blocks: int) -> keras.Model:
    """A network that is as deep as one likes: its ops grow with its depth, and nothing else does."""
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(16, 3, padding="same")(inputs)
    for _ in range(blocks):
        y = layers.Activation("relu")(layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same")(x)))
        x = layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same")(y))])
    return compiled(keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x))), "adam", "mse")


def _of(name: str, build: Build, batch_size: int) -> Configuration:
    return Configuration(name, "speed", build, batch_size)


# Nothing is repeated any more after so many seconds.
PATIENCE = 15.0

# With the seconds that an estimate may take, and whether a machine with two cores and 16 GiB can run it. The last ones
# have no such target, and nothing is held against them: they show how the time grows with the number of ops.
MODELS: dict[str, tuple[Configuration, float | None, bool]] = {
    one.name: (one, target, runs)
    for one, target, runs in (
        (_of("example CNN, Dense 128, batch 1", partial(_example, 128), 1), 1, False),
        (_of("example CNN, Dense 8, batch 1", partial(_example, 8), 1), 1, True),
        (_of("ResNet50, batch 8", partial(_application, "ResNet50", 224), 8), 5, True),
        (_of("MobileNetV2, batch 8", partial(_application, "MobileNetV2", 224), 8), 5, True),
        (_of("EfficientNetB7, batch 1", partial(_application, "EfficientNetB7", 224), 1), 30, True),
        *(
            (_of(f"{blocks} residual blocks, batch 8", partial(_residual, blocks), 8), None, False)
            for blocks in (10, 20, 40)
        ),
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", choices=(ONE, DEFAULT), default=DEFAULT, help="inter-op threads")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--match", default="", help="regular expression on the names of the models")
    parser.add_argument("--no-run", action="store_true", help="do not run the models themselves")
    parser.add_argument("--json", type=Path, default=Path("build/speed.json"))
    args = parser.parse_args()
    out = console()
    started = time.perf_counter()
    table = Table(title=f"Seconds after imports, inter-op threads: {args.threads}")
    for title in (
        "model",
        "ops",
        "memest",
        "processor",
        "processor, µs an op",
        "target",
        "Grappler, with tracing",
        "build and first step",
        "a later step",
    ):
        table.add_column(title)
    table.add_column("allocated by memest")
    rows = []
    for name, (_, target, runs) in MODELS.items():
        if not re.search(args.match, name):
            continue
        row: dict[str, Any] = {"name": name, "target": target}
        for kind, function in (("memest", timed_estimate), ("grappler", timed_grappler), ("run", timed_run)):
            if (kind == "run" and (args.no_run or not runs)) or (kind == "grappler" and target is None):
                continue
            try:
                row[kind] = _fastest(function, name, args.threads, args.repeat if kind == "memest" else 1)
            except ProcessError as error:
                out.print(f"{name}, {kind}: {error}", style="red", highlight=False)
        rows.append(row)
        table.add_row(
            name,
            _cell(row, "memest", "ops", "{:,}"),
            _cell(row, "memest", "seconds"),
            _cell(row, "memest", "processor"),
            _cell(row, "memest", "microseconds_an_op", "{:.0f}"),
            "-" if target is None else f"{target:.0f}",
            _cell(row, "grappler", "seconds"),
            _cell(row, "run", "seconds"),
            _cell(row, "run", "step"),
            _cell(row, "memest", "allocated", "{:,} B"),
        )
    out.print(table)
    out.print(f"All of it took {time.perf_counter() - started:.0f} s.")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({**about(), "threads": args.threads, "rows": rows}, indent=1))


def _fastest(function: Callable[[str], dict[str, Any]], name: str, threads: str, times: int) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    while len(found) < times and sum(one["seconds"] for one in found) < PATIENCE:
        found.append(in_process(function, name, threads=threads))
    return min(found, key=lambda one: float(one["seconds"]))


def _cell(row: dict[str, Any], kind: str, key: str, text: str = "{:.2f}") -> str:
    return text.format(row[kind][key]) if kind in row else "-"


def timed_estimate(name: str) -> dict[str, Any]:
    """Seconds of an estimate, of processor time too, and the most that the device's allocator held meanwhile.

    With the ops of the traced step, and the processor's microseconds for each.
    """
    configuration, *_ = MODELS[name]
    started, before = time.perf_counter(), time.process_time()
    made = memest.estimate(configuration.build, batch_size=configuration.batch_size)
    seconds, processor = time.perf_counter() - started, time.process_time() - before
    origin: Any = made.origin
    ops = len(origin._first.step.definition.node)
    return {
        "seconds": seconds,
        "processor": processor,
        "ops": ops,
        "microseconds_an_op": processor / ops * 1e6,
        "allocated": statistics()["peak"],
        "peak": made.peak_bytes,
    }


def timed_grappler(name: str) -> dict[str, Any]:
    """Seconds of tracing the same step and asking Grappler's predictor."""
    configuration, *_ = MODELS[name]
    started = time.perf_counter()
    with tf_context.eager_mode(), untouched_globals():
        given = Given(configuration.batch_size, None, None, None, None)
        training = training_of_function(configuration.build, given)
        try:
            peak = grappler_peak(training)
            return {"seconds": time.perf_counter() - started, "peak": peak}
        finally:
            training.discard()


def timed_run(name: str) -> dict[str, Any]:
    """Seconds to build a model and train it one step, seconds of a later step, and their peak."""
    configuration, *_ = MODELS[name]
    started = time.perf_counter()
    step, _ = prepared(configuration, configuration.build())
    step()
    first = time.perf_counter()
    step()
    later = time.perf_counter() - first
    return {"seconds": first - started, "step": later, "peak": statistics()["peak"]}


if __name__ == "__main__":
    main()
