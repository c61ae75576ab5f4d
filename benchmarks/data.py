"""The batch that a configuration is fed: made before anything is measured, and handed out anew each step."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.configuration import Configuration


def batch_of(configuration: Configuration, model: keras.Model) -> Any:
    """One batch in the structure that `train_step` takes."""
    generator = np.random.default_rng(0)
    inputs = configuration.inputs if configuration.inputs is not None else _inputs(model)
    x = _map(lambda spec: _drawn(spec, configuration.batch_size, generator, configuration.vocabulary), inputs)
    targets = _target(model) if configuration.targets is None else configuration.targets
    if targets == ():
        return x
    # Whatever the number of classes, the first two exist.
    return x, _map(lambda spec: _drawn(spec, configuration.batch_size, generator, 2), targets)


def inputs_of(configuration: Configuration, batch: Any) -> Any:
    """What a model predicts for: the batch without its targets."""
    return batch if configuration.targets == () else batch[0]


def batches_of(batch: Any) -> Any:
    """An iterator over `dataset_of(batch)`."""
    return iter(dataset_of(batch))


def dataset_of(batch: Any) -> tf.data.Dataset:
    """Copies of `batch` without an end.

    Each step gets memory of its own for its batch, freed after its last use, as from a real pipeline. No thread makes
    the next one meanwhile.
    """
    dataset = tf.data.Dataset.from_tensors(keras.tree.lists_to_tuples(batch)).repeat()
    dataset = dataset.map(lambda *parts: _map(tf.raw_ops.DeepCopy, parts if len(parts) > 1 else parts[0], "x"))
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def _map(function: Any, structure: Any, argument: str | None = None) -> Any:
    called = function if argument is None else lambda value: function(**{argument: value})
    return keras.tree.map_structure(called, structure)


def _inputs(model: keras.Model) -> Any:
    # A functional model may take a dict or a list; a sequential one takes its only input.
    return getattr(model, "_inputs_struct", model.inputs[0])


def _target(model: keras.Model) -> Any:
    loss, output = model.loss, model.outputs[0]
    sparse = (loss if isinstance(loss, str) else type(loss).__name__).lower().startswith("sparse")
    return tf.TensorSpec(output.shape[:-1], "int64") if sparse else tf.TensorSpec(output.shape, "float32")


def _drawn(spec: Any, batch_size: int, generator: np.random.Generator, bound: int) -> tf.Tensor:
    shape = (batch_size, *spec.shape[1:])
    dtype = tf.as_dtype(spec.dtype)
    if dtype.is_integer:
        return tf.constant(generator.integers(0, bound, shape), dtype)
    return tf.constant(generator.random(shape, np.float32), dtype)
