"""Trains one model for a few steps and prints, as JSON, what its allocator counted. A process of its own.

python -m benchmarks.measure "founding, Dense 8" --steps 10
"""

from __future__ import annotations

import argparse
import json

import keras
import tensorflow as tf

from benchmarks.models import MODELS

DEVICE = "CPU:0"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--one-thread", action="store_true")
    args = parser.parse_args()
    if args.one_thread:
        tf.config.threading.set_inter_op_parallelism_threads(1)
    build, batch_size = MODELS[args.model]
    model = build()
    build_peak = _statistics()["peak"]

    x = tf.zeros((batch_size, *model.inputs[0].shape[1:]), model.inputs[0].dtype)
    sparse = str(model.loss).startswith("sparse")
    outputs = model.outputs[0].shape[1:]
    shape = (batch_size, *outputs[:-1]) if sparse else (batch_size, *outputs)
    y = tf.zeros(shape, "int64" if sparse else "float32")
    # What is fed lives in the same allocator; it is made before, and taken off what is measured.
    fed = sum(tensor.shape.num_elements() * tensor.dtype.size for tensor in (x, y))
    batches = iter(tf.data.Dataset.from_tensors((x, y)).repeat())
    model._symbolic_build(data_batch=keras.tree.map_structure(_symbolic, (x, y)))
    model.make_train_function()
    peaks = []
    for _ in range(args.steps):
        tf.config.experimental.reset_memory_stats(DEVICE)
        model.train_function(batches)
        peaks.append(_statistics()["peak"] - fed)
    print(json.dumps({"build": build_peak, "steps": peaks}))


def _statistics() -> dict[str, int]:
    statistics: dict[str, int] = tf.config.experimental.get_memory_info(DEVICE)
    return statistics


def _symbolic(tensor: tf.Tensor) -> keras.KerasTensor:
    return keras.KerasTensor(tensor.shape, tensor.dtype.name)


if __name__ == "__main__":
    main()
