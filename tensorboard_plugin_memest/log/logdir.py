"""Which directory a run logs to: the one given, or the one its default `tf.summary` writer writes to."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.compat.proto import event_pb2

_WHAT_TO_DO = (
    "Pass logdir='path/of/the/run', or call inside `with tf.summary.create_file_writer(logdir).as_default():`."
)
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# pathlib.Path("gs://bucket/run") turns the two slashes into one.
_REMOTE_MADE_LOCAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")


def resolve_logdir(logdir: str | os.PathLike[str] | None) -> str:
    """The run's directory: `logdir`, or where it is None the directory of the current default `tf.summary` writer.

    Local paths come back absolute, so that they survive a change of the working directory.

    Raises:
        ValueError: there is neither, or the path cannot be one.
        TypeError: `logdir` is no path.
    """
    if logdir is None:
        return _default_writer_directory()
    try:
        path = os.fspath(logdir)
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise TypeError(f"logdir is a directory as str or os.PathLike, not {logdir!r}. {_WHAT_TO_DO}")
    if not path:
        raise ValueError(f"logdir is empty. {_WHAT_TO_DO}")
    if _REMOTE.match(path):
        return path
    if _REMOTE_MADE_LOCAL.match(path):
        raise ValueError(f"logdir {logdir!r} lost a slash of its remote address; pass it as str, not as a path object.")
    return os.path.abspath(path)


def _default_writer_directory() -> str:
    writer = _default_writer()
    if writer is None:
        raise ValueError(f"There is no log directory: no logdir was given and no default writer is set. {_WHAT_TO_DO}")
    directory = _directory_in_python(writer) or _directory_of_open_file(writer)
    if directory is None:
        raise ValueError(
            f"The directory of the current default tf.summary writer ({writer!r}) cannot be found out. "
            "Pass logdir='path/of/the/run', the same that the writer was created with."
        )
    return resolve_logdir(directory)


def _default_writer() -> Any:
    # TensorFlow has no public name for it.
    from tensorflow.python.ops import summary_ops_v2

    return getattr(getattr(summary_ops_v2, "_summary_state", None), "writer", None)


def _directory_in_python(writer: Any) -> str | None:
    """The directory as the Python object knows it: that of a trackable writer, or of one made in a graph."""
    arguments = getattr(getattr(writer, "_init_op_fn", None), "keywords", {})
    logdir = arguments.get("logdir")
    if logdir is None:
        # In a graph the op that opens the file is kept; its second input is the directory.
        inputs: Any = getattr(getattr(writer, "_init_op", None), "inputs", ())
        logdir = inputs[1] if len(inputs) > 1 else None
    if tf.is_tensor(logdir):
        logdir = tf.get_static_value(logdir)
    if isinstance(logdir, np.ndarray):
        logdir = logdir.item()
    return logdir.decode() if isinstance(logdir, bytes) else logdir


def _directory_of_open_file(writer: Any) -> str | None:
    """The directory of the event file that `writer` holds open.

    A writer made eagerly keeps its directory in native code alone, and nothing there tells it. But its file is open in
    this process. Which one it is shows when the writer is asked to write: an event without content, which readers
    pass over, comes out in exactly one file.
    """
    resource = getattr(writer, "_resource", None)
    sizes = {path: os.path.getsize(path) for path in _open_event_files()}
    if not sizes or resource is None:
        return None
    from tensorflow.python.eager import context
    from tensorflow.python.ops import gen_summary_ops

    # The time is a double with 52 bits of fraction, so it tells this event from all others.
    event = event_pb2.Event(wall_time=time.time()).SerializeToString()
    try:
        # The caller may be inside a graph of its own.
        with context.eager_mode(), tf.device("cpu:0"):
            gen_summary_ops.import_event(resource, event)
            gen_summary_ops.flush_summary_writer(resource)
    except tf.errors.OpError:
        return None
    found = [path for path, size in sizes.items() if event in _written_since(path, size)]
    return os.path.dirname(found[0]) if len(found) == 1 else None


def _open_event_files() -> list[str]:
    """Event files that this process has open; empty where the system does not tell."""
    paths = {path for path in map(_path_of_descriptor, _descriptors()) if path and ".tfevents." in path}
    return sorted(path for path in paths if os.path.isfile(path))


def _descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except (OSError, ValueError):
        return []


def _path_of_descriptor(descriptor: int) -> str | None:
    try:
        if sys.platform == "darwin":
            import fcntl

            return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/dev/fd/{descriptor}")
    except OSError:
        return None


def _written_since(path: str, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(size)
        return file.read()
