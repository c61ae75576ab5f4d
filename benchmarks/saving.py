"""What saving a model takes of the host's memory: predicted, and measured as the rise of the resident set.

python -m benchmarks.saving [--match PATTERN] [--json build/saving.json]

Models of about 200 MB of weights are trained for a step and saved in every format, each in a fresh process, in which
malloc has given back what it need not hold. Beside the bytes the table has the difference relative to what was
measured; of a TensorFlow checkpoint, which takes a few MB whatever the model, relative to the model.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.about import about, console
from benchmarks.processes import ONE, ProcessError, in_process
from tensorboard_plugin_memest.memory.units import format_bytes

KERAS, WEIGHTS, LEGACY, CHECKPOINT, EXPORT = ".keras", ".weights.h5", ".h5", "tf.train.Checkpoint", "export"
FORMATS = (KERAS, WEIGHTS, LEGACY, CHECKPOINT, EXPORT)
OPTIMIZERS = ("adam", "sgd")


def _one_layer(keras: Any) -> Any:
    return keras.Sequential([keras.Input((7000,)), keras.layers.Dense(8000), keras.layers.Dense(1)])


def _eight_layers(keras: Any) -> Any:
    hidden = [keras.layers.Dense(2700) for _ in range(8)]
    return keras.Sequential([keras.Input((2700,)), *hidden, keras.layers.Dense(1)])


def _words(keras: Any) -> Any:
    words = keras.Input((10,), dtype="int32")
    encoded = keras.layers.GRU(1500)(keras.layers.Embedding(60_000, 400)(words))
    return keras.Model(words, keras.layers.Dense(1)(keras.layers.Dense(8000)(encoded)))


def _images(keras: Any) -> Any:
    parts = [keras.layers.Conv2D(units, 3, padding="same", activation="relu") for units in (128, 512, 1024, 2048, 1024)]
    parts += [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1000), keras.layers.Dense(1)]
    return keras.Sequential([keras.Input((8, 8, 3)), *parts])


MODELS: dict[str, Callable[[Any], Any]] = {
    "one layer": _one_layer,
    "eight layers": _eight_layers,
    "words": _words,
    "images": _images,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help='regular expression on "model, optimizer, format"')
    parser.add_argument("--json", type=Path, default=Path("build/saving.json"), help="where the result goes")
    args = parser.parse_args()
    terminal = console()
    rows = []
    for model in MODELS:
        for optimizer in OPTIMIZERS:
            formats = [one for one in FORMATS if re.search(args.match, f"{model}, {optimizer}, {one}")]
            for how in formats:
                try:
                    measured = in_process(measure, model, optimizer, how, threads=ONE)
                    predicted = in_process(predict, model, optimizer, how, threads=ONE)
                except ProcessError as error:
                    terminal.print(str(error), style="red", highlight=False)
                    continue
                rows.append({"model": model, "optimizer": optimizer, "format": how, "predicted": predicted, **measured})
                terminal.print(f"[dim]{model}, {optimizer}, {how}: {predicted:,}, {measured['rise']:,}[/]")
    terminal.print(_table(rows))
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({**about(), "rows": rows}, indent=1))


def predict(model: str, optimizer: str, how: str) -> int:
    """Bytes of the host's memory as estimated; run in a process of its own."""
    import tensorflow as tf

    import memest

    saves = {CHECKPOINT: tf.train.Checkpoint(), EXPORT: "a"}.get(how, f"a{how}")
    made = memest.estimate(lambda: _compiled(model, optimizer), batch_size=2, jit_compile=False, saves=saves)
    return made.phases["checkpoint"].host_peak_bytes


def measure(model: str, optimizer: str, how: str) -> dict[str, int]:
    """Bytes by which the resident set rose, and of the weights; run in a process of its own."""
    import tensorflow as tf

    made = _compiled(model, optimizer)
    (batch,) = made.inputs
    made.train_on_batch(tf.zeros((2, *batch.shape[1:]), batch.dtype), tf.zeros((2, 1)))
    weights = sum(tf.size(weight.value).numpy().item() * 4 for weight in made.weights)
    checkpoint = tf.train.Checkpoint(model=made, optimizer=made.optimizer)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "a")
        # What was freed before is no rise when it is used again.
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        if how == CHECKPOINT:
            checkpoint.save(path)
        elif how == EXPORT:
            made.export(path, verbose=False)
        elif how == WEIGHTS:
            made.save_weights(path + how)
        else:
            made.save(path + how)
        return {"rise": _status("VmHWM") - before, "weights": weights}


def _compiled(model: str, optimizer: str) -> Any:
    import keras

    made = MODELS[model](keras)
    made.compile(optimizer, "mse", jit_compile=False)
    return made


def _status(field: str) -> int:
    """A size in /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Host memory that saving takes: predicted, and the measured rise of the resident set")
    for title in ("model", "optimizer", "format"):
        table.add_column(title)
    for title in ("predicted", "measured", "difference"):
        table.add_column(title, justify="right")
    for row in rows:
        whole = row["weights"] if row["format"] in (CHECKPOINT, EXPORT) else row["rise"]
        of = " of the weights" if row["format"] in (CHECKPOINT, EXPORT) else ""
        table.add_row(
            row["model"],
            row["optimizer"],
            row["format"],
            format_bytes(row["predicted"]),
            format_bytes(row["rise"]),
            f"{(row['predicted'] - row['rise']) / whole:+.1%}{of}",
        )
    return table


if __name__ == "__main__":
    main()
