"""Writing records: what is on disk, when, and what of the process stays as it was."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

from tensorboard_plugin_memest.log import event_file
from tensorboard_plugin_memest.log.metadata import parse_content
from tensorboard_plugin_memest.log.record import Notes, decode
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.headline import Headline
from tests.samples import sample_estimate, sample_peaks, sample_profile


def event_files(run: Path) -> list[Path]:
    return sorted((run / "memest").glob("*tfevents*"))


def events(run: Path) -> list:
    return [event for file in event_files(run) for event in EventFileLoader(str(file)).Load()]


def records(run: Path) -> list[tuple[str, object]]:
    """Tag and record of every summary, in the order in which they were written."""
    found = []
    for event in events(run):
        for value in event.summary.value:
            payload = tensor_util.make_ndarray(value.tensor)
            assert payload.shape == ()
            kind = parse_content(value.metadata.plugin_data.content).kind
            found.append((value.tag, decode(kind, payload.item())))
    return found


def test_every_kind_is_read_back_equal(tmp_path):
    estimate, peaks, profile = sample_estimate(), sample_peaks(), sample_profile()
    with RunWriter(tmp_path) as writer:
        writer.write_estimate(estimate)
        writer.write_peaks(peaks)
        writer.write_profile(profile)
        writer.write_notes(["No GPU.", "No profile."])
    assert records(tmp_path) == [
        ("estimate", estimate),
        ("headline", Headline.of(estimate)),
        ("peaks/CPU:0", peaks),
        ("profile/cpu_bfc@host/2026_01_01_00_00_00", profile),
        ("notes", Notes(("No GPU.", "No profile."))),
    ]


def test_nothing_is_created_before_the_first_record(tmp_path):
    run = tmp_path / "run"
    with RunWriter(run):
        pass
    assert not run.exists()


def test_a_record_is_on_disk_when_its_method_returns(tmp_path):
    with RunWriter(tmp_path) as writer:
        writer.write_peaks(sample_peaks(steps=1))
        assert records(tmp_path) == [("peaks/CPU:0", sample_peaks(steps=1))]
        writer.write_peaks(sample_peaks(steps=2))
        assert records(tmp_path)[1:] == [("peaks/CPU:0", sample_peaks(steps=2))]


def test_a_killed_run_keeps_what_it_had(tmp_path):
    code = (
        "import sys; from tensorboard_plugin_memest.log.writer import RunWriter;"
        "RunWriter(sys.argv[1]).write_notes(['as far as it came']); import os, signal;"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert records(tmp_path) == [("notes", Notes(("as far as it came",)))]


def test_steps_rise_over_writers_and_are_later_than_those_of_earlier_processes(tmp_path):
    before = time.time_ns() // 1000
    for _ in range(2):
        with RunWriter(tmp_path) as writer:
            for _ in range(50):
                writer.write_notes(["again"])
    steps = [event.step for event in events(tmp_path) if event.summary.value]
    assert len(steps) == 100
    assert steps == sorted(set(steps))
    assert before <= steps[0]
    assert steps[-1] <= time.time_ns() // 1000


def test_a_clock_set_back_does_not_set_the_steps_back(tmp_path, monkeypatch):
    with RunWriter(tmp_path) as writer:
        writer.write_notes(["now"])
        monkeypatch.setattr(time, "time_ns", lambda: 5)
        writer.write_notes(["later"])
    first, second = (event.step for event in events(tmp_path) if event.summary.value)
    assert second == first + 1


def test_nor_does_it_make_a_later_process_the_older_one(tmp_path, monkeypatch):
    with RunWriter(tmp_path) as writer:
        writer.write_notes(["first"])
    (first,) = event_files(tmp_path)
    # As in a process that knows of nothing that was written before, a day earlier.
    now = time.time()
    monkeypatch.setattr(event_file, "_last_step", 0)
    monkeypatch.setattr(time, "time_ns", lambda: int((now - 86400) * 10**9))
    monkeypatch.setattr(time, "time", lambda: now - 86400)
    with RunWriter(tmp_path) as writer:
        writer.write_notes(["second"])
    files = event_files(tmp_path)
    assert files[0] == first
    assert [record.sentences[0] for _, record in records(tmp_path)] == ["first", "second"]
    steps = [event.step for event in events(tmp_path) if event.summary.value]
    assert steps[0] < steps[1]


def test_writers_of_one_run_share_a_file_while_any_is_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = RunWriter("run")
    second = RunWriter(tmp_path / "run")
    first.write_notes(["first"])
    second.write_notes(["second"])
    first.close()
    first.close()
    second.write_notes(["third"])
    assert len(event_files(tmp_path / "run")) == 1
    second.close()
    with RunWriter("run") as third:
        third.write_notes(["fourth"])
    files = event_files(tmp_path / "run")
    assert len(files) == 2
    written = [record.sentences[0] for _, record in records(tmp_path / "run")]
    assert written == ["first", "second", "third", "fourth"], "files sort in the order in which they were made"


def test_a_relative_directory_stays_the_same_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = RunWriter("here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer.write_notes(["x"])
    writer.close()
    assert len(event_files(tmp_path / "here")) == 1


def test_threads_write_whole_records(tmp_path):
    with RunWriter(tmp_path) as writer:

        def write(number: int) -> None:
            for _ in range(20):
                writer.write_peaks(sample_peaks(f"GPU:{number}", steps=50))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = records(tmp_path)
    assert len(found) == 80
    assert {tag: sum(tag == other for other, _ in found) for tag, _ in found} == {
        f"peaks/GPU:{n}": 20 for n in range(4)
    }


def test_a_file_system_of_tensorflows(tmp_path):
    with RunWriter("ram://bucket/run") as writer:
        assert writer.logdir == "ram://bucket/run"
        writer.write_notes(["far away"])
    (name,) = tf.io.gfile.listdir("ram://bucket/run/memest")
    tf.io.gfile.makedirs(str(tmp_path / "memest"))
    tf.io.gfile.copy(f"ram://bucket/run/memest/{name}", str(tmp_path / "memest" / name))
    assert records(tmp_path) == [("notes", Notes(("far away",)))]


def test_a_closed_writer_says_so(tmp_path):
    writer = RunWriter(tmp_path)
    writer.close()
    with pytest.raises(ValueError, match=f"RunWriter of {tmp_path} is closed"):
        writer.write_notes(["x"])
    assert not (tmp_path / "memest").exists()


def test_notes_are_sentences(tmp_path):
    with RunWriter(tmp_path) as writer, pytest.raises(TypeError, match="not the single text 'a note'"):
        writer.write_notes("a note")


def test_the_training_does_not_notice(tmp_path):
    """Default writer, step, random numbers, eager context's memory, working directory."""
    profile = sample_profile(events=2000)
    theirs = tf.summary.create_file_writer(str(tmp_path / "theirs"))

    def draw() -> list:
        return [
            random.random(),
            np.random.random(),
            tf.random.uniform([]).numpy(),
            tf.random.get_global_generator().uniform([]).numpy(),
        ]

    def seed() -> None:
        random.seed(1)
        np.random.seed(1)
        tf.random.set_seed(1)
        tf.random.get_global_generator().reset_from_seed(1)

    seed()
    expected = draw()
    with theirs.as_default(step=7):
        seed()
        tf.config.experimental.reset_memory_stats("CPU:0")
        memory = tf.config.experimental.get_memory_info("CPU:0")
        with RunWriter() as writer:
            writer.write_estimate(sample_estimate())
            writer.write_profile(profile)
        assert tf.config.experimental.get_memory_info("CPU:0") == memory
        assert draw() == expected
        assert tf.summary.experimental.get_step() == 7
        tf.summary.write("theirs", tf.constant(1.0))
    theirs.close()
    (file,) = (tmp_path / "theirs").glob("*tfevents*")
    values = [(event.step, value.tag) for event in EventFileLoader(str(file)).Load() for value in event.summary.value]
    assert values == [(7, "theirs")]
    assert len(event_files(tmp_path / "theirs")) == 1
