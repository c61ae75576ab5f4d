"""Data pipelines to estimate and to measure: name to what exists before, and to the pipeline made of it.

Sizes are such that each holds some 100 to 400 MB, and none more than 1.3 GB.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Dataset = tf.data.Dataset
Pipeline = tuple[Callable[[], Any], Callable[[Any], Any]]

SPECTROGRAM = (1491, 257, 1)  # The founding example's.
CLIPS = 810
IMAGE = 25_000  # float32 values: 100 kB, which is no multiple of 64 bytes.


def _nothing() -> None:
    return None


def _array(rows: int, columns: int, dtype: str = "float32") -> Callable[[], npt.NDArray[Any]]:
    return lambda: np.ones((rows, columns), dtype)


def _values(number: tf.Tensor, shape: tuple[int, ...] = (IMAGE,)) -> tf.Tensor:
    return tf.zeros(shape) + tf.cast(number, tf.float32)


def _images(count: int) -> Any:
    return Dataset.range(count).map(_values)


def _clips() -> Any:
    return Dataset.range(CLIPS).map(lambda number: (_values(number, SPECTROGRAM), tf.cast(number, tf.float32)))


def _generated() -> Iterator[npt.NDArray[Any]]:
    for _ in range(2000):
        yield np.ones(IMAGE, np.float32)


def _records() -> list[str]:
    folder = Path(tempfile.mkdtemp())
    paths = [str(folder / f"{number}.tfrecord") for number in range(4)]
    for path in paths:
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(500):
                writer.write(b"x" * 100_000)
    return paths


def _spec() -> tf.TensorSpec:
    return tf.TensorSpec((IMAGE,), tf.float32)


def _file_cache(_: None) -> Any:
    return _images(2000).cache(str(Path(tempfile.mkdtemp()) / "cache")).batch(500)


PIPELINES: dict[str, Pipeline] = {
    "founding: cache": (_nothing, lambda _: _clips().cache().batch(1).prefetch(1)),
    "founding: shuffle": (_nothing, lambda _: _clips().shuffle(1000).batch(1).prefetch(1)),
    "founding: cache and shuffle": (_nothing, lambda _: _clips().cache().shuffle(1000).batch(1).prefetch(1)),
    "scalars, shuffle": (
        lambda: np.arange(2_000_000),
        lambda data: Dataset.from_tensor_slices(data).shuffle(2_000_000),
    ),
    "scalars, cache": (lambda: np.arange(700_000), lambda data: Dataset.from_tensor_slices(data).cache()),
    "pairs of scalars, shuffle": (
        lambda: np.arange(700_000),
        lambda data: Dataset.from_tensor_slices((data, data)).shuffle(700_000),
    ),
    "scalars in batches, shuffle": (
        lambda: np.arange(20_000_000),
        lambda data: Dataset.from_tensor_slices(data).batch(1000).shuffle(20_000),
    ),
    "slices, batch": (_array(2000, IMAGE), lambda data: Dataset.from_tensor_slices(data).batch(100)),
    "slices, shuffle": (_array(2000, IMAGE), lambda data: Dataset.from_tensor_slices(data).shuffle(2000).batch(10)),
    "aligned slices, shuffle": (
        _array(2000, 25_600),
        lambda data: Dataset.from_tensor_slices(data).shuffle(2000).batch(10),
    ),
    "slices, not rewritten": (
        _array(3000, IMAGE),
        lambda data: Dataset.from_tensor_slices(data).batch(10).with_options(_not_rewritten()),
    ),
    "vectors of 64, shuffle": (
        _nothing,
        lambda _: Dataset.range(400_000).map(lambda one: _values(one, (64,))).shuffle(400_000),
    ),
    "large batches": (_nothing, lambda _: _images(6000).batch(1000)),
    "large batches, prefetch 4": (_nothing, lambda _: _images(8000).batch(500).prefetch(4)),
    "prefetch elements": (_nothing, lambda _: _images(6000).prefetch(2000)),
    "parallel map": (
        _nothing,
        lambda _: Dataset.range(64).map(lambda one: _values(one, (5_000_000,)), num_parallel_calls=8),
    ),
    "small buffer, batches": (_nothing, lambda _: _images(4000).shuffle(2000).batch(500)),
    "shuffle and repeat": (_nothing, lambda _: _images(1000).shuffle(10_000).repeat(4).batch(10)),
    "repeat and shuffle": (_nothing, lambda _: _images(1000).repeat(4).shuffle(2500).batch(10)),
    "windows": (_nothing, lambda _: _images(8000).window(2000).flat_map(lambda one: one.batch(2000))),
    "zip of two caches": (
        _nothing,
        lambda _: Dataset.zip((_images(1000).cache(), _images(1000).cache())).batch(10),
    ),
    "concatenated caches": (_nothing, lambda _: _images(1000).cache().concatenate(_images(1000).cache()).batch(10)),
    "sample from two shuffles": (
        _nothing,
        lambda _: Dataset.sample_from_datasets([_images(1000).shuffle(1000), _images(1000).shuffle(1000)]).batch(10),
    ),
    "generator, shuffle": (
        _nothing,
        lambda _: (
            Dataset.from_generator(_generated, output_signature=_spec())
            .apply(tf.data.experimental.assert_cardinality(2000))
            .shuffle(2000)
            .batch(10)
        ),
    ),
    "records, interleave, cache": (
        _records,
        lambda paths: (
            Dataset.from_tensor_slices(paths)
            .interleave(tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=2)
            .map(lambda record: tf.reshape(tf.io.decode_raw(record, tf.uint8), (100_000,)))
            .cache()
            .batch(10)
        ),
    ),
    "padded batches": (
        _nothing,
        lambda _: (
            Dataset.range(3000)
            .map(lambda one: tf.ensure_shape(_values(one, (20_000,)), (20_000,)))
            .padded_batch(1000, padded_shapes=(50_000,))
        ),
    ),
    "cache in a file": (_nothing, _file_cache),
}


def _not_rewritten() -> tf.data.Options:
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return options
