"""Which directory is written to."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from tensorboard_plugin_memest.log.logdir import resolve_logdir


def test_an_argument_wins_over_the_default_writer(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path / "default")).as_default():
        assert resolve_logdir(str(tmp_path / "given")) == str(tmp_path / "given")


def test_paths_of_every_sort(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve_logdir(Path("a/../b")) == str(tmp_path / "b")
    assert resolve_logdir("b/") == str(tmp_path / "b")
    assert resolve_logdir("gs://bucket/run") == "gs://bucket/run"


def test_neither_says_what_to_do():
    with pytest.raises(ValueError, match=r"Pass logdir=.*or call inside `with tf.summary.create_file_writer") as caught:
        resolve_logdir(None)
    assert "no logdir was given and no default writer is set" in str(caught.value)


def test_what_is_no_path():
    with pytest.raises(TypeError, match=r"not 5\. Pass logdir="):
        resolve_logdir(5)
    with pytest.raises(TypeError, match="not b'bytes'"):
        resolve_logdir(b"bytes")
    with pytest.raises(ValueError, match="empty"):
        resolve_logdir("")
    with pytest.raises(ValueError, match=r"gs:/bucket/run.*pass it as str"):
        resolve_logdir(Path("gs://bucket/run"))


def test_the_right_one_of_several_open_writers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["train", "validation", "spaced name ß"]
    writers = {name: tf.summary.create_file_writer(name) for name in names}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name, writer in writers.items():
        with writer.as_default():
            tf.summary.write("pending", tf.constant(1.0), step=0)
            assert resolve_logdir(None) == str(tmp_path / name)
            assert resolve_logdir(None) == str(tmp_path / name)


@pytest.mark.parametrize("trackable", [False, True])
def test_inside_a_graph(tmp_path, trackable):
    writer = tf.summary.create_file_writer(str(tmp_path), experimental_trackable=trackable)
    found = []

    @tf.function(autograph=False)
    def step():
        found.append(resolve_logdir(None))
        return tf.constant(1)

    with writer.as_default():
        step()
        with tf.Graph().as_default():
            found.append(resolve_logdir(None))
    assert found == [str(tmp_path)] * 2


def test_a_writer_of_a_graph(tmp_path):
    with tf.Graph().as_default(), tf.summary.create_file_writer(str(tmp_path)).as_default():
        assert resolve_logdir(None) == str(tmp_path)


def test_what_was_written_to_find_it_is_no_data(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        tf.summary.write("before", tf.constant(1.0), step=3)
        resolve_logdir(None)
        tf.summary.write("after", tf.constant(1.0), step=4)
    writer.close()
    (file,) = tmp_path.glob("*tfevents*")
    events = list(EventFileLoader(str(file)).Load())
    assert [(event.step, value.tag) for event in events for value in event.summary.value] == [
        (3, "before"),
        (4, "after"),
    ]
    assert [event.WhichOneof("what") for event in events] == ["file_version", "summary", None, "summary"]


def test_a_remote_writer_beside_a_local_one_is_not_mistaken_for_it(tmp_path):
    local = tf.summary.create_file_writer(str(tmp_path))
    remote = tf.summary.create_file_writer("ram://bucket/other")
    with remote.as_default(), pytest.raises(ValueError, match=r"cannot be found out\. Pass logdir="):
        resolve_logdir(None)
    local.close()


def test_a_closed_writer_has_no_directory(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        writer.close()
        with pytest.raises(ValueError, match="cannot be found out"):
            resolve_logdir(None)


def test_a_system_that_does_not_tell_open_files(tmp_path, monkeypatch):
    from tensorboard_plugin_memest.log import logdir

    monkeypatch.setattr(logdir, "_descriptors", list)
    with tf.summary.create_file_writer(str(tmp_path)).as_default(), pytest.raises(ValueError, match="the same that"):
        resolve_logdir(None)
