"""Advice on data pipelines: every figure is the estimate of the pipeline as changed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import memest
from tensorboard_plugin_memest.memory.host import HostLever

Dataset = tf.data.Dataset
PATHS = [f"/data/image-{number:06}.jpg" for number in range(2000)]


def decode(path: tf.Tensor, dtype: tf.DType = tf.float32) -> tf.Tensor:
    image = tf.cast(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), dtype)
    return tf.ensure_shape(image, (1080, 1920, 3))


def small(path: tf.Tensor) -> tf.Tensor:
    return decode(path, tf.uint8)


def lever(dataset: Dataset, name: str) -> HostLever:
    (found,) = [one for one in memest.estimate_dataset(dataset).levers if one.name == name]
    return found


def peak(dataset: Dataset) -> int:
    return memest.estimate_dataset(dataset).peak_bytes


def source() -> Dataset:
    return Dataset.from_tensor_slices(PATHS)


CHANGES = {
    "shuffle before map": (
        lambda: source().map(decode).shuffle(500).batch(8),
        lambda: source().shuffle(500).map(decode).batch(8),
    ),
    "shuffle before batch": (
        lambda: source().map(decode).batch(8).shuffle(100).prefetch(1),
        lambda: source().map(decode).shuffle(100).batch(8).prefetch(1),
    ),
    "a shuffle buffer of a tenth": (
        lambda: source().map(decode).shuffle(500).batch(8),
        lambda: source().map(decode).shuffle(50).batch(8),
    ),
    "images as uint8": (
        lambda: source().map(decode).shuffle(500).batch(8),
        lambda: source().map(small).shuffle(500).batch(8),
    ),
    "cache in a file": (
        lambda: source().map(decode).cache().batch(8),
        lambda: source().map(decode).cache("cache").batch(8),
    ),
    "no cache": (
        lambda: source().map(decode).cache().batch(8),
        lambda: source().map(decode).batch(8),
    ),
    "batch before shuffle, 1000 elements in one": (
        lambda: Dataset.from_tensor_slices(np.arange(50_000)).shuffle(50_000),
        lambda: Dataset.from_tensor_slices(np.arange(50_000)).batch(1000).shuffle(50).unbatch(),
    ),
    "prefetch one element": (
        lambda: source().map(decode).batch(8).prefetch(6),
        lambda: source().map(decode).batch(8).prefetch(1),
    ),
    "2 parallel calls": (
        lambda: source().map(decode, num_parallel_calls=8),
        lambda: source().map(decode, num_parallel_calls=2),
    ),
    "batch before map": (
        lambda: Dataset.range(1000).map(lambda one: tf.zeros((50_000,))).batch(100),
        lambda: Dataset.range(1000).batch(100).map(lambda many: tf.zeros((tf.shape(many)[0], 50_000))),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_lever_is_the_estimate_of_the_changed_pipeline(name):
    before, after = CHANGES[name]
    found = lever(before(), name)
    assert found.peak_bytes == pytest.approx(peak(after()), rel=0.001)
    assert found.saving_bytes == peak(before()) - found.peak_bytes > 0
    assert found.helps
    assert found.cost
    assert bool(found.code) == (name != "no cache"), "a line that is only left out needs none"


def test_numbers_can_be_shuffled_instead_of_what_they_stand_for():
    data = np.zeros((2000, 1001), np.float32)
    found = lever(Dataset.from_tensor_slices(data).shuffle(2000), "shuffle numbers instead of elements")
    assert found.peak_bytes < 2 * data.nbytes + 2**17
    assert found.saving_bytes > 0.9 * data.nbytes


def test_the_most_helpful_comes_first_and_what_does_not_help_last():
    advice = memest.estimate_dataset(source().map(decode).cache().shuffle(2000).batch(8)).advice()
    savings = [one.saving_bytes for one in advice]
    assert savings == sorted(savings, reverse=True)
    assert len(advice) == len(savings) > 0
    assert all(one.reason is None for one in advice)
    # The buffer holds what the cache held: alone, neither can go.
    (cache,) = [one for one in advice.useless if one.name == "no cache"]
    assert cache.reason.startswith("What needs most then is shuffle, with")
    assert advice[0].code in str(advice)
    assert cache.reason[:40] in str(advice)


def test_a_cache_and_a_buffer_of_the_same_tensors_go_together():
    found = memest.estimate_dataset(source().map(decode).cache().shuffle(2000).batch(8)).advice()
    both = next(one for one in found if one.name == "cache in a file, a shuffle buffer of a tenth")
    assert both.peak_bytes == pytest.approx(peak(source().map(decode).cache("cache").shuffle(200).batch(8)), rel=0.001)
    assert both.helps


def test_what_never_was_bytes_is_not_made_bytes():
    sounds = Dataset.range(9).map(lambda one: tf.zeros((100, 100, 1)) + tf.cast(one, tf.float32)).cache()
    assert "images as uint8" not in [one.name for one in memest.estimate_dataset(sounds).levers]


def test_a_hundred_thousand_large_images_fit_after_three_changes():
    paths = [f"/data/{number}.jpg" for number in range(100_000)]

    def uhd(path):
        return tf.ensure_shape(tf.cast(tf.io.decode_jpeg(tf.io.read_file(path)), tf.float32), (2160, 3840, 3))

    estimate = memest.estimate_dataset(Dataset.from_tensor_slices(paths).map(uhd).shuffle(10_000).batch(32).prefetch(2))
    assert estimate.peak_bytes > 10_000 * 2160 * 3840 * 3 * 4
    best = estimate.advice()[0]
    assert best.name == "shuffle before map"
    assert best.peak_bytes < estimate.peak_bytes / 50
    assert {"images as uint8", "a shuffle buffer of a tenth"} <= {one.title for one in estimate.advice()}
