"""The batch that a configuration is fed: made before anything is measured, and handed out anew each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.configuration import Configuration


def batch_of(configuration: Configuration, model: keras.Model) -> Any:
    """One batch in the structure that `train_step` takes."""
    generator = np.random.default_rng(0)
    return _drawn_batch(configuration, model, lambda shape, dtype, bound: _drawn(shape, dtype, bound, generator))


def drawn_batches(configuration: Configuration, model: keras.Model, *, targets: bool = True) -> tf.data.Dataset:
    """Batches without an end, each drawn when it is asked for: nothing of them lies in memory before.

    Args:
        configuration: whose batches.
        model: its model.
        targets: whether they come with targets, for a configuration that has some.
    """

    def draw(number: tf.Tensor) -> Any:
        seeds = itertools.count()

        def one(shape: tuple[int, ...], dtype: tf.DType, bound: int) -> tf.Tensor:
            seed = tf.stack([number, next(seeds)])
            if dtype.is_floating:
                return tf.random.stateless_uniform(shape, seed, dtype=dtype)
            return tf.cast(tf.random.stateless_uniform(shape, seed, 0, bound, tf.int64), dtype)

        batch = _drawn_batch(configuration, model, one)
        fed = keras.tree.lists_to_tuples(batch if targets else inputs_of(configuration, batch))
        # Of a tuple Keras takes the first part for the inputs.
        return fed if targets or not isinstance(fed, tuple) else (fed,)

    return tf.data.Dataset.range(2**40).map(draw).with_options(_options())


def _drawn_batch(
    configuration: Configuration, model: keras.Model, draw: Callable[[tuple[int, ...], tf.DType, int], tf.Tensor]
) -> Any:
    def drawn(specs: Any, bound: int) -> Any:
        size = configuration.batch_size
        return _map(lambda spec: draw((size, *spec.shape[1:]), tf.as_dtype(spec.dtype), bound), specs)

    x = drawn(configuration.inputs if configuration.inputs is not None else _inputs(model), configuration.vocabulary)
    targets = _target(model) if configuration.targets is None else configuration.targets
    # Whatever the number of classes, the first two exist.
    return x if targets == () else (x, drawn(targets, 2))


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
    return dataset.with_options(_options())


def _options() -> tf.data.Options:
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


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


def _drawn(shape: tuple[int, ...], dtype: tf.DType, bound: int, generator: np.random.Generator) -> tf.Tensor:
    if dtype.is_integer:
        return tf.constant(generator.integers(0, bound, shape), dtype)
    return tf.constant(generator.random(shape, np.float32), dtype)
