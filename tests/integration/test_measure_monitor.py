"""memest.monitor in custom training loops."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path

import keras
import pytest
import tensorflow as tf

import memest
from tensorboard_plugin_memest.measure.allocator import Found
from tensorboard_plugin_memest.measure.profile_files import find_profiles
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.measured import MeasuredBeside
from tests.samples import sample_estimate
from tests.unit.measure.logged import Fake, read_log


def beside(logdir: Path) -> dict[str, MeasuredBeside]:
    return {record.what: record for record in read_log(logdir).records if isinstance(record, MeasuredBeside)}


def test_every_step_s_peak_is_what_tensorflow_reports(tmp_path):
    x = tf.random.uniform((256, 300))
    weight = tf.Variable(tf.zeros((300, 200)))
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build([weight])

    @tf.function
    def train_step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(batch @ weight - 1))
        optimizer.apply([tape.gradient(loss, weight)], [weight])
        return loss

    readings, kept = [], []
    with memest.monitor(tmp_path, estimate=sample_estimate()) as m:
        for _ in range(4):
            with m.step():
                kept.append(train_step(x))
            info = tf.config.experimental.get_memory_info("CPU:0")
            readings.append((info["peak"], info["current"]))
        with m.evaluation():
            large = tf.zeros((1000, 1000)) + 1
            evaluated = tf.config.experimental.get_memory_info("CPU:0")["peak"]
        del large
        assert m.steps == 4
    logged = read_log(tmp_path)
    assert [(w.peak_bytes, w.current_bytes) for w in logged.peaks["CPU:0"].windows] == readings
    assert logged.estimates == [sample_estimate()]
    assert (logged.notes, logged.crashes) == ((), [])
    found = beside(tmp_path)
    assert found["evaluate"].peaks.peak_bytes == evaluated
    assert evaluated > readings[-1][1] + 4_000_000
    # The process's resident set, once a training step.
    assert found["host"].peaks.steps == 4
    assert found["host"].peaks.peak_bytes > 2**27


def test_steps_of_several_threads_that_overlap_are_one_record(tmp_path):
    gpu = Fake([(0, 0), (5, 5), (3, 30), (4, 4), (2, 20)])
    together = threading.Barrier(3)

    def work():
        with m.step():
            together.wait(20)

    with memest.monitor(tmp_path, allocators=lambda: Found((gpu,))) as m:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with m.step(2):
            pass
    windows = read_log(tmp_path).peaks["GPU:0"].windows
    assert [(w.first_step, w.last_step, w.peak_bytes) for w in windows] == [(0, 2, 30), (3, 4, 20)]


def test_whoever_observes_is_told_of_the_steps_of_all_threads(tmp_path, monkeypatch):
    class Observer:
        def __init__(self):
            self.told = []

        def begin(self, estimate):
            self.told.append(estimate)

        def end(self, steps):
            self.told.append(steps)

    observer = Observer()
    monkeypatch.setattr("tensorboard_plugin_memest.measure.monitor.OBSERVERS", [observer])
    with memest.monitor(tmp_path, allocators=lambda: Found(())) as m:
        with m.step(), m.step(3):
            pass
        with pytest.raises(KeyError), m.step():
            raise KeyError
    assert observer.told == [None, 4, None]


def test_memory_that_ran_out_is_explained_before_the_error_goes_on(tmp_path):
    text = (
        "OOM when allocating tensor with shape[6019376,128] and type float on /device:GPU:0\n [[{{node adam/Mul_7}}]]"
    )
    error = tf.errors.ResourceExhaustedError(None, None, text)
    gpu = Fake([(0, 0), (5, 5), (3, 30), (4, 4), (2, 20)], limit_bytes=40)
    monitor = memest.monitor(tmp_path, estimate=sample_estimate(), allocators=lambda: Found((gpu,)))

    def train():
        with monitor as m:
            with m.step():
                pass
            with m.step():
                raise error

    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        train()
    assert caught.value is error
    logged = read_log(tmp_path)
    (crash,) = logged.crashes
    assert (crash.step, crash.phase, crash.in_use_bytes, crash.limit_bytes) == (1, "step", 20, 40)
    assert (crash.layer, crash.category) == ("sequential/dense", Category.TEMPORARIES)
    assert logged.peaks["GPU:0"].steps == 2
    assert logged.notes[-1].startswith("Training ended inside step 1 with ResourceExhaustedError")


def test_a_step_that_another_error_ended_is_left_out_and_the_loop_may_go_on(tmp_path):
    gpu = Fake([(0, 0), (5, 5), (3, 3), (1, 10)])
    with memest.monitor(tmp_path, allocators=lambda: Found((gpu,))) as m:
        with pytest.raises(KeyError), m.step():
            raise KeyError("data")
        with m.step():
            pass
    logged = read_log(tmp_path)
    assert [w.peak_bytes for w in logged.peaks["GPU:0"].windows] == [10]
    assert logged.crashes == []


@pytest.mark.parametrize("fails", ["first", "last"])
def test_of_steps_that_overlap_those_that_fail_are_left_out(tmp_path, fails):
    inside, left = threading.Barrier(2), threading.Event()

    def step(number: int) -> None:
        with contextlib.suppress(RuntimeError), m.step(number):
            inside.wait()
            if (number == 2) == (fails == "last"):
                left.wait(10)
            if number == 2:
                raise RuntimeError("not about memory")
        left.set()

    with memest.monitor(tmp_path) as m:
        threads = [threading.Thread(target=step, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert m.steps == 1
    assert read_log(tmp_path).peaks["CPU:0"].steps == 1


@pytest.mark.parametrize("worker", [0, 1])
def test_of_several_workers_the_first_profiles(tmp_path, monkeypatch, worker):
    task = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": worker}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(task))
    with memest.monitor(tmp_path, profile_batch=2) as m:
        for _ in range(3):
            with m.step():
                tf.ones((100, 100)) + 1
    assert len(find_profiles(tmp_path)) == 1 - worker
    logged = read_log(tmp_path)
    assert len(logged.profiles) == 1 - worker
    assert [note[:30] for note in logged.notes] == ["Only the first worker makes a "] * worker
    assert logged.peaks["CPU:0"].steps == 3


def test_misuse_is_told(tmp_path):
    m = memest.monitor(tmp_path)
    with pytest.raises(ValueError, match="belongs inside the with block"), m.step():
        pass
    with m:
        with pytest.raises(ValueError, match="on already"), m:
            pass
        with pytest.raises(ValueError, match="not 0"), m.step(0):
            pass
        with m.step(), pytest.raises(ValueError, match="outside of any step"), m.prediction():
            pass
    with pytest.raises(ValueError, match="profile_batch"):
        memest.monitor(tmp_path, profile_batch="x")


def test_evaluation_beside_a_step_of_another_thread_is_no_error_and_is_told(tmp_path):
    """Both ways: it begins during a step, and a step begins during it."""
    allocator = Fake([(0, 0), (1, 1), (2, 7), (3, 3), (1, 1), (2, 9), (1, 1), (2, 5)])
    with memest.monitor(tmp_path, allocators=lambda: Found((allocator,))) as m:
        for first, second in [(m.step, m.evaluation), (m.evaluation, m.step)]:
            begun, over = threading.Event(), threading.Event()

            def hold(first=first, begun=begun, over=over):
                with first():
                    begun.set()
                    assert over.wait(60)

            thread = threading.Thread(target=hold)
            thread.start()
            assert begun.wait(60)
            with second():
                pass
            over.set()
            thread.join()
        with m.prediction():
            pass
    assert m.steps == 2
    logged = read_log(tmp_path)
    assert [window.peak_bytes for window in logged.peaks["GPU:0"].windows] == [7, 9]
    apart = [record for record in logged.records if isinstance(record, MeasuredBeside) and record.what != "host"]
    assert [(record.what, record.peaks.peak_bytes) for record in apart] == [("predict", 5)]
    assert sum("ran beside steps of other threads" in note for note in logged.notes) == 1
