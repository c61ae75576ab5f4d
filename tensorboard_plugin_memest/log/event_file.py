"""One event file that several writers of a process share, and steps that only rise.

Written with `tf.io.TFRecordWriter`: it takes whatever file systems TensorFlow knows (`gs://` and others), needs no
tensor, no eager context and no thread, and its checksums are native code. TensorBoard's own `EventFileWriter` computes
them in Python, which measured 92 ms a MiB against 6 ms; a profile can have many.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
import threading
import time

import tensorflow as tf
from tensorboard.compat.proto import event_pb2, summary_pb2

from tensorboard_plugin_memest.log.process import part_of_process

_numbers = itertools.count()
_lock = threading.RLock()
_open: dict[str, EventFile] = {}
_last_step = 0

# By so many microseconds file systems are late at most when they tell of a change.
_COARSE = 1_000_000


class EventFile:
    """An event file in `directory`, created by the first event. Get one from `share`."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._writer: tf.io.TFRecordWriter | None = None
        self.users = 0

    def write(self, value: summary_pb2.Summary.Value) -> None:
        """Writes one summary and flushes it, so that a killed run keeps it."""
        with _lock:
            if self._writer is None:
                self._writer = self._create()
            event = event_pb2.Event(
                wall_time=time.time(), step=_next_step(), summary=summary_pb2.Summary(value=[value])
            )
            self._writer.write(event.SerializeToString())
            self._writer.flush()

    def release(self) -> None:
        """Closes the file when its last user is done with it."""
        with _lock:
            self.users -= 1
            if self.users == 0:
                del _open[self._directory]
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None

    def _create(self) -> tf.io.TFRecordWriter:
        directory = os.path.join(self._directory, part_of_process(self._directory))
        tf.io.gfile.makedirs(directory)
        # Readers take the files of a directory in the order of their names, so the numbers have leading zeros. A clock
        # that was set back makes this one no older than those of earlier processes.
        named, changed = _newest(directory)
        if changed > time.time_ns():
            _steps_from(changed // 1000 + _COARSE)
        seconds = max(int(time.time()), named + 1)
        name = f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers):06d}"
        writer = tf.io.TFRecordWriter(os.path.join(directory, name))
        first = event_pb2.Event(
            wall_time=time.time(),
            file_version="brain.Event:2",
            source_metadata=event_pb2.SourceMetadata(writer="tensorboard_plugin_memest"),
        )
        writer.write(first.SerializeToString())
        return writer


def _newest(directory: str) -> tuple[int, int]:
    """Of the event files in `directory` the latest second in a name, and the latest change in nanoseconds; else 0."""
    named, changed = 0, 0
    for name in tf.io.gfile.listdir(directory):
        match = re.match(r"events\.out\.tfevents\.(\d+)\.", name)
        if match:
            named = max(named, int(match[1]))
            changed = max(changed, tf.io.gfile.stat(os.path.join(directory, name)).mtime_nsec)
    return named, changed


def share(directory: str) -> EventFile:
    """The process's one event file in `directory`; `release` it when done.

    One, because a reader that has moved on to the newer of two files may never look at the older again.
    """
    with _lock:
        file = _open.setdefault(directory, EventFile(directory))
        file.users += 1
        return file


def _steps_from(step: int) -> None:
    global _last_step
    _last_step = max(_last_step, step)


def _next_step() -> int:
    """A step above all before it, also those of earlier processes: microseconds since 1970.

    Equal steps within a tag would collapse into one, and a smaller one would count as older.
    """
    global _last_step
    _last_step = max(_last_step + 1, time.time_ns() // 1000)
    return _last_step
