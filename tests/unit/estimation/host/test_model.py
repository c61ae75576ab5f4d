"""Pipelines whose memory can be worked out by hand."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import memest
from tensorboard_plugin_memest.memory.host import HostEstimate, Stage

Dataset = tf.data.Dataset
SPECTROGRAM = 1491 * 257 * 4  # bytes of the founding example's element
GIB = 2**30


def stage(estimate: HostEstimate, name: str) -> Stage:
    (found,) = [one for one in estimate.stages if one.name == name]
    return found


def clips(count: int = 810) -> Dataset:
    return Dataset.range(count).map(lambda one: (tf.zeros((1491, 257, 1)), tf.cast(one, tf.float32)))


@pytest.mark.parametrize(
    "pipeline",
    [
        lambda: clips().cache(),
        lambda: clips().shuffle(1000),
        lambda: clips().cache().shuffle(1000),
    ],
    ids=["cache", "shuffle", "both"],
)
def test_the_founding_pipeline_is_held_once(pipeline):
    estimate = memest.estimate_dataset(pipeline().batch(1).prefetch(1))
    assert estimate.peak_bytes / GIB == pytest.approx(1.16, rel=0.02)
    assert estimate.peak_bytes == sum(one.bytes for one in estimate.stages)


def test_a_shuffle_buffer_refers_to_what_the_cache_keeps():
    estimate = memest.estimate_dataset(clips().cache().shuffle(1000).batch(1))
    assert stage(estimate, "cache").bytes >= 810 * SPECTROGRAM
    buffer = stage(estimate, "shuffle")
    assert buffer.bytes < 2**17
    assert buffer.elements == 810
    assert "not the 1,000 asked for" in buffer.reason
    assert "keeps anyway" in buffer.reason


def test_a_map_in_between_makes_new_tensors():
    changed = clips(10).cache().map(lambda image, label: (image + 1, label)).shuffle(10)
    assert stage(memest.estimate_dataset(changed), "shuffle").bytes >= 10 * SPECTROGRAM


def test_what_a_map_hands_on_untouched_stays_shared():
    kept = clips(10).cache().map(lambda image, label: (image, label + 1)).shuffle(10)
    assert stage(memest.estimate_dataset(kept), "shuffle").bytes < 4096


def test_fifty_million_scalars_cost_two_hundred_bytes_each():
    numbers = np.broadcast_to(np.int64(0), (50,))
    few = memest.estimate_dataset(Dataset.from_tensor_slices(numbers).shuffle(50))
    each = stage(few, "shuffle").bytes / 50
    assert 180 < each < 220
    assert "8 bytes of data" in stage(few, "shuffle").reason


def test_a_buffer_larger_than_the_data_holds_the_data_and_a_smaller_one_itself():
    assert stage(memest.estimate_dataset(clips(30).shuffle(20)), "shuffle").elements == 20
    assert stage(memest.estimate_dataset(clips(30).shuffle(50)), "shuffle").elements == 30
    # One op of the two: up to three epochs are in the buffer.
    assert stage(memest.estimate_dataset(clips(30).shuffle(500).repeat()), "shuffle").elements == 90
    assert stage(memest.estimate_dataset(clips(30).shuffle(500).repeat(2)), "shuffle").elements == 60
    assert stage(memest.estimate_dataset(clips(30).repeat().shuffle(500)), "shuffle").elements == 500


def test_a_buffer_that_more_passes_through_leaves_holes():
    passing = memest.estimate_dataset(clips(30).shuffle(20))
    full = memest.estimate_dataset(clips(20).shuffle(20))
    assert passing.slack_bytes - full.slack_bytes == pytest.approx(0.8 * 20 * SPECTROGRAM, rel=0.01)
    # Regions of 1, 2, 4, ... MiB, with 8 bytes for every 256: of 34 MB one takes those up to 32 MiB.
    assert full.slack_bytes == 63 * 2**20 // 32
    assert memest.estimate_dataset(Dataset.range(100).shuffle(100)).slack_bytes == 0


def test_what_a_function_makes_inside_is_counted_while_it_works():
    def shrink(one):
        large = tf.fill((1000, 1000), tf.cast(one, tf.float32))
        return tf.reduce_sum(large)

    alone = memest.estimate_dataset(Dataset.range(9).map(shrink))
    assert 4_000_000 < alone.peak_bytes < 4_100_000
    parallel = memest.estimate_dataset(Dataset.range(9).map(shrink, num_parallel_calls=1))
    assert stage(parallel, "map, parallel").bytes > 4_000_000


def test_embedded_data_is_held_twice_unless_the_pipeline_is_not_rewritten():
    data = np.zeros((100, 1000), np.float32)
    dataset = Dataset.from_tensor_slices(data).batch(10)
    assert stage(memest.estimate_dataset(dataset), "from_tensor_slices").bytes == 2 * data.nbytes
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    plain = memest.estimate_dataset(dataset.with_options(options))
    assert stage(plain, "from_tensor_slices").bytes == data.nbytes


def test_slices_at_a_multiple_of_64_bytes_refer_to_the_data():
    def buffer(columns: int) -> int:
        data = np.zeros((10, columns), np.float32)
        return stage(memest.estimate_dataset(Dataset.from_tensor_slices(data).shuffle(10)), "shuffle").bytes

    assert buffer(1600) < 2000
    assert buffer(1601) > 10 * 6404 * 0.9
    # 100 kB is 32 modulo 64: every other slice is copied.
    assert buffer(25_000) == pytest.approx(5 * 100_000, rel=0.05)


def test_batches_are_as_large_as_their_elements_together():
    estimate = memest.estimate_dataset(clips(100).batch(32).prefetch(3))
    kept = stage(estimate, "prefetch")
    assert kept.elements == 3
    assert kept.bytes >= 3 * 32 * SPECTROGRAM
    last = estimate.stages[-1]
    assert last.name == "in use"
    assert last.element_bytes == pytest.approx(32 * SPECTROGRAM, rel=0.001)


def test_after_a_batch_a_map_knows_the_batch_size():
    estimate = memest.estimate_dataset(clips(100).batch(32).map(lambda image, label: (image * 2, label)))
    assert estimate.stages[-1].element_bytes == pytest.approx(32 * SPECTROGRAM, rel=0.001)
    assert estimate.assumptions == ()


def test_a_cache_in_a_file_is_not_in_memory(tmp_path):
    estimate = memest.estimate_dataset(clips().cache(str(tmp_path / "file")))
    assert stage(estimate, "cache").bytes == 0
    assert estimate.peak_bytes < 20 * 2**20
    assert not list(tmp_path.iterdir())


def test_windows_zips_concatenations_and_samples():
    assert stage(memest.estimate_dataset(clips(50).window(20)), "window").bytes >= 20 * SPECTROGRAM
    zipped = memest.estimate_dataset(Dataset.zip((clips(9).cache(), clips(7).cache())))
    assert [one.elements for one in zipped.stages if one.name == "cache"] == [9, 7]
    joined = memest.estimate_dataset(clips(9).concatenate(clips(7)).shuffle(100))
    assert stage(joined, "shuffle").elements == 16
    sampled = memest.estimate_dataset(Dataset.sample_from_datasets([clips(9).shuffle(9), clips(7).shuffle(7)]))
    assert [one.elements for one in sampled.stages if one.name == "shuffle"] == [9, 7]


def test_a_dataset_used_twice_has_one_cache():
    cached = clips(9).cache()
    estimate = memest.estimate_dataset(Dataset.zip((cached, cached)))
    assert [one.name for one in estimate.stages].count("cache") == 1


def test_records_are_counted_from_the_sizes_of_the_files(tmp_path):
    paths = [str(tmp_path / f"{number}.tfrecord") for number in range(3)]
    for path in paths:
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(20):
                writer.write(bytes(5000))
    direct = memest.estimate_dataset(tf.data.TFRecordDataset(paths).cache())
    assert stage(direct, "cache").elements == 60
    assert stage(direct, "cache").bytes == pytest.approx(60 * 5000, rel=0.06)
    files = Dataset.from_tensor_slices(paths)
    interleaved = files.interleave(tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=2).cache()
    assert stage(memest.estimate_dataset(interleaved), "cache").elements == 60
    assert any("as long as the first" in sentence for sentence in direct.assumptions)


def test_what_is_not_known_is_told_and_can_be_looked_at():
    def rows():
        for _ in range(5):
            yield np.zeros((300, 7), np.float32)

    dataset = Dataset.from_generator(rows, output_signature=tf.TensorSpec((None, 7), tf.float32)).cache()
    guessed = memest.estimate_dataset(dataset)
    assert any("taken for 256" in sentence for sentence in guessed.assumptions)
    assert any("elements=" in sentence for sentence in guessed.assumptions)
    looked = memest.estimate_dataset(dataset, sample=True, elements=5)
    assert stage(looked, "cache").bytes == pytest.approx(5 * 300 * 7 * 4, rel=0.05)


def test_ops_of_other_modules_of_tensorflow(tmp_path):
    def cached(dataset: Dataset) -> int | None:
        return stage(memest.estimate_dataset(dataset.cache()), "cache").elements

    one = tf.TensorSpec((), tf.float32)
    told = Dataset.from_generator(lambda: iter([1.0]), output_signature=one)
    assert cached(told.apply(tf.data.experimental.assert_cardinality(7))) == 7
    clips(5).save(str(tmp_path / "saved"))
    assert cached(Dataset.load(str(tmp_path / "saved"))) == 5
    assert cached(clips(6).batch(3).rebatch(2)) == 3
    assert cached(clips(6).ignore_errors().enumerate()) == 6
    fused = clips(9).apply(tf.data.experimental.map_and_batch(lambda image, label: image * 2, 4, num_parallel_calls=4))
    batches = stage(memest.estimate_dataset(fused), "map_and_batch, parallel")
    assert batches.bytes == pytest.approx(batches.elements * 4 * SPECTROGRAM, rel=0.01)
    groups = Dataset.range(100).group_by_window(lambda x: x % 2, lambda _, inner: inner.batch(9), window_size=9)
    assert any("group_by_window" in sentence for sentence in memest.estimate_dataset(groups).assumptions)


def test_ragged_batches():
    ragged = Dataset.range(100).map(lambda one: tf.range(one)).ragged_batch(10)
    estimate = memest.estimate_dataset(ragged)
    assert estimate.peak_bytes > 0
    assert any("ragged" in sentence or "256" in sentence for sentence in estimate.assumptions)


def test_arrays_for_fit_are_copied_once_and_twice_for_a_moment():
    x = np.broadcast_to(np.uint16(0), (5000, 512, 512, 1))
    y = np.broadcast_to(np.float32(0), (5000, 512, 512, 1))
    estimate = memest.estimate_dataset((x, y))
    assert stage(estimate, "fit: data").bytes == x.nbytes + y.nbytes == 2621440000 + 5242880000
    assert estimate.peak_bytes == pytest.approx(7505 * 2**20, rel=0.05)
    assert estimate.startup_bytes >= 2 * (x.nbytes + y.nbytes)
    assert all(lever.peak_bytes < estimate.peak_bytes / 10 for lever in estimate.advice())
    assert "second copy" in str(estimate)


def test_float64_arrays_become_float32_and_a_split_shares():
    data = np.broadcast_to(np.float64(0), (1000, 100))
    whole = memest.estimate_dataset(data)
    assert stage(whole, "fit: data").bytes == data.nbytes // 2
    parts = memest.estimate_dataset(data, validation_split=0.2)
    assert stage(parts, "fit: training data").bytes == data.nbytes // 2 * 8 // 10
    assert stage(parts, "fit: validation data").bytes == data.nbytes // 2 * 2 // 10


def test_tensors_are_not_copied():
    assert stage(memest.estimate_dataset(tf.zeros((1000, 100))), "fit: data").bytes == 0


class Batches(keras.utils.PyDataset):
    made = 0

    def __len__(self):
        return 40

    def __getitem__(self, index):
        self.made += 1
        return np.zeros((32, 1000), np.float32), np.zeros((32,), np.float32)


def test_a_py_dataset_with_workers_keeps_a_queue():
    batches = Batches(workers=4, max_queue_size=12)
    with pytest.raises(ValueError, match="sample=False"):
        memest.estimate_dataset(batches, sample=False)
    assert batches.made == 0
    estimate = memest.estimate_dataset(batches)
    assert batches.made == 1
    assert stage(estimate, "PyDataset: queue").bytes == 12 * (32 * 1000 * 4 + 32 * 4)
    assert "PyDataset: queue" not in [one.name for one in memest.estimate_dataset(Batches(), sample=True).stages]
    (shorter,) = estimate.advice()
    assert shorter.peak_bytes == memest.estimate_dataset(Batches(workers=4, max_queue_size=4)).peak_bytes
    assert not memest.estimate_dataset(Batches(workers=4, max_queue_size=4)).levers


def test_lists_become_one_tensor():
    assert memest.estimate_dataset([1, 2, 3]).peak_bytes == 12
    assert memest.estimate_dataset([[1.0, 2.0], [3.0, 4.0]]).peak_bytes == 16
    assert memest.estimate_dataset(["a" * 100, "b"]).peak_bytes == 24 + 117 + 24


@pytest.mark.parametrize("wrong", [None, 3, "data", (1, 2), iter([1])], ids=lambda wrong: type(wrong).__name__)
def test_what_is_no_data_is_refused_in_words(wrong):
    with pytest.raises(TypeError, match=r"tf\.data\.Dataset|arrays"):
        memest.estimate_dataset(wrong)


def test_arguments_out_of_range_are_refused():
    for wrong in ({"elements": -1}, {"batch_size": 0}, {"validation_split": 1.0}):
        with pytest.raises(ValueError, match=repr(next(iter(wrong.values())))):
            memest.estimate_dataset(np.zeros((4, 2)), **wrong)


def test_estimating_runs_nothing_of_the_pipeline():
    ran = []

    def touch(one):
        ran.append(one)
        return one

    memest.estimate_dataset(Dataset.range(9).map(lambda one: tf.py_function(touch, [one], tf.int64)).cache().batch(3))
    assert ran == []
