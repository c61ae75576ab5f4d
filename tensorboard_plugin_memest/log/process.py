"""Where in a run's directory a process writes, so that several that train together do not write over each other."""

from __future__ import annotations

import json
import os
import re
import socket

import tensorflow as tf

# The jobs of a cluster whose processes are numbered together, in this order.
_JOBS = ("chief", "master", "worker", "ps", "evaluator")
_EVENT_FILE = re.compile(r"events\.out\.tfevents\.\d+\.(.+)\.(\d+)\.\d+")


def part_of_process(directory: str) -> str:
    """The subdirectory of `directory` for this process's records; empty for the directory itself.

    TensorBoard's slow loader stops reading the older of two event files in one directory. Of the workers that
    `TF_CONFIG` names, the first writes to the directory itself and every other to one of its own, `worker_1`. So does a
    process that finds another at work there, as `process_4711`.

    Args:
        directory: where records of the run go.
    """
    worker = worker_number(os.environ.get("TF_CONFIG", ""))
    if worker is not None:
        return f"worker_{worker}" if worker else ""
    return f"process_{os.getpid()}" if _is_taken(directory) else ""


def worker_number(tf_config: str) -> int | None:
    """The number of the process that `tf_config` describes in its cluster; None where it is none of several.

    Args:
        tf_config: what the environment variable `TF_CONFIG` says.
    """
    try:
        config = json.loads(tf_config)
        cluster, task = config["cluster"], config["task"]
        job, index = str(task["type"]), int(task["index"])
        sizes = {name: len(cluster.get(name, ())) for name in _JOBS}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if sum(sizes.values()) < 2 or job not in _JOBS:
        return None
    return sum(sizes[name] for name in _JOBS[: _JOBS.index(job)]) + index


def _is_taken(directory: str) -> bool:
    """Whether another process of this host is writing an event file in `directory`, as far as the system tells."""
    try:
        names = tf.io.gfile.listdir(directory)
    except (tf.errors.OpError, OSError):
        return False
    for name in names:
        match = _EVENT_FILE.fullmatch(name)
        others = match is not None and match[1] == socket.gethostname() and int(match[2]) != os.getpid()
        if match and others and _has_open(int(match[2]), os.path.realpath(os.path.join(directory, name))):
            return True
    return False


def _has_open(pid: int, path: str) -> bool:
    """Linux tells which files a process has open, to whoever runs it."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as descriptors:
            return any(_target(descriptor.path) == path for descriptor in descriptors)
    except OSError:
        return False


def _target(link: str) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None
