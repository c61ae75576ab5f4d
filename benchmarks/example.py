"""The founding example, predicted without being run, and measured for real where there is room for it.

python -m benchmarks.example [--steps 4] [--json build/example.json]

Convolutions on clips of 1491 x 257, then a Dense layer of 128 units with 770 million parameters; batch 1. Each way to
train it is estimated in one process and trained in another, without `memest`, under the allocator that serves GPUs.
Where the machine has less free memory than the estimate and some room beside it, a Dense layer of 16 or 8 units stands
in for the one that is run; the full one is predicted all the same.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.about import about, console
from benchmarks.processes import DEFAULT, in_process
from tensorboard_plugin_memest.measure.host import available_bytes
from tensorboard_plugin_memest.memory.units import format_bytes

UNITS = (128, 16, 8)
TRAININGS = {"Adam, graph": ("adam", False), "Adam, XLA": ("adam", True), "SGD, graph": ("sgd", False)}

# What Python, TensorFlow and the compiler take beside what the allocator counts, and what others on the machine need.
ROOM = 2 * 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--only", choices=TRAININGS, help="one of the trainings")
    parser.add_argument("--json", type=Path, default=Path("build/example.json"))
    args = parser.parse_args()
    terminal = console()
    rows = []
    for name in [args.only] if args.only else TRAININGS:
        rows += _rows(name, args.steps, terminal)
    terminal.print(_table(rows))
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({**about(), "rows": rows}, indent=1))


def _rows(name: str, steps: int, terminal: Console) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for units in UNITS:
        predicted = in_process(predict, name, units, threads=DEFAULT)
        row = {"training": name, "units": units, "predicted": predicted, "measured": None}
        rows.append(row)
        needed = max(high for _, _, high in predicted.values()) + ROOM
        free = available_bytes()
        if free is None or free >= needed:
            row["measured"] = in_process(train, name, units, steps, threads=DEFAULT)
            break
        terminal.print(
            f"[dim]{name}, Dense {units}: {format_bytes(needed)} are needed to run it, {format_bytes(free)} free[/]",
            highlight=False,
        )
    return rows


def predict(name: str, units: int) -> dict[str, tuple[int, int, int]]:
    """Peak, lowest and highest of each phase in bytes; run in a process of its own."""
    import memest

    made = memest.estimate(lambda: _build(name, units), batch_size=1)
    return {phase.name: (phase.peak_bytes, *phase.peak_range) for phase in made.phases.values()}


def train(name: str, units: int, steps: int) -> dict[str, list[int]]:
    """Measured peaks in bytes, a list for each phase; run in a process of its own."""
    import tensorflow as tf

    def statistics() -> int:
        peak: int = tf.config.experimental.get_memory_info("CPU:0")["peak"]
        tf.config.experimental.reset_memory_stats("CPU:0")
        return peak

    model = _build(name, units)
    build = statistics()
    batches = iter(tf.data.Dataset.from_tensors((tf.zeros((1, 1491, 257, 1)), tf.zeros((1, 1)))).repeat())
    model.make_train_function()
    peaks = []
    for _ in range(steps):
        statistics()
        model.train_function(batches)
        peaks.append(statistics())
    return {"build": [build], "first_step": peaks[:1], "step": peaks[1:]}


def _build(name: str, units: int) -> Any:
    import keras
    from keras import layers

    parts = [keras.Input((1491, 257, 1)), *(layers.Conv2D(16, 3, activation="relu") for _ in range(2))]
    parts += [layers.Flatten(), layers.Dense(units, activation="relu"), layers.Dense(1, activation="sigmoid")]
    model = keras.Sequential(parts)
    optimizer, jit_compile = TRAININGS[name]
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"], jit_compile=jit_compile)
    return model


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="The founding example, batch 1: predicted without running it, and measured")
    table.add_column("training")
    table.add_column("phase")
    table.add_column("predicted", justify="right")
    table.add_column("can be", justify="right")
    table.add_column("measured", justify="right")
    for row in rows:
        for phase, (peak, low, high) in row["predicted"].items():
            spread = f"{format_bytes(low)} to {format_bytes(high)}" if low < high else ""
            measured = row["measured"][phase] if row["measured"] else []
            ends = dict.fromkeys(format_bytes(end) for end in (min(measured), max(measured))) if measured else {}
            cells = [phase.replace("_", " "), format_bytes(peak), spread, " to ".join(ends) or "not run"]
            table.add_row(f"{row['training']}, Dense {row['units']}" if phase == "build" else "", *cells)
    return table


if __name__ == "__main__":
    main()
