"""The profiles below a log directory, and those of them that are new."""

from __future__ import annotations

import os

import tensorflow as tf

from tensorboard_plugin_memest.log.logdir import resolve_logdir
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.measure.profile import read_profile
from tensorboard_plugin_memest.measure.xplane import SUFFIX
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.measured import MeasuredProfile


def find_profiles(logdir: str | os.PathLike[str]) -> list[str]:
    """Every `*.xplane.pb` below `logdir`, in the order of their paths, which end in the time of their start."""
    found = []
    for directory, _, names in tf.io.gfile.walk(os.fspath(logdir)):
        found += [os.path.join(directory, name) for name in names if name.endswith(SUFFIX)]
    return sorted(found)


def log_profile(
    path_or_logdir: str | os.PathLike[str],
    logdir: str | os.PathLike[str] | None = None,
    estimate: Estimate | None = None,
) -> list[MeasuredProfile]:
    """Reads profiles and writes their memory timelines where TensorBoard's Memory tab finds them.

    Args:
        path_or_logdir: a `*.xplane.pb`, or a run's directory with any number of them below.
        logdir: the run's directory to log to; None for the same as `path_or_logdir`, or for a file the directory above
            its `plugins/profile`.
        estimate: of the model that was trained; its variables are looked for in what was allocated before a profile.

    Returns:
        What was written: one profile for each allocator of each file.

    Raises:
        ProfileError: a file is no profile or not complete.
        ValueError: there is no profile, or `logdir` is needed and missing.
    """
    given = os.fspath(path_or_logdir)
    is_file = given.endswith(SUFFIX)
    paths = [given] if is_file else find_profiles(given)
    if not paths:
        raise ValueError(
            f"There is no *{SUFFIX} below {given!r}; give the directory that a profiler wrote to, or a file."
        )
    if logdir is None:
        logdir = _run_of(given) if is_file else given
    profiles = [profile for path in paths for profile in read_profile(path, estimate)]
    with RunWriter(resolve_logdir(logdir)) as writer:
        for profile in profiles:
            writer.write_profile(profile)
    return profiles


def _run_of(path: str) -> str:
    """The run's directory of `<run>/plugins/profile/<time>/<host>.xplane.pb`."""
    parts = path.replace(os.sep, "/").split("/")
    if len(parts) < 4 or parts[-4:-2] != ["plugins", "profile"]:
        raise ValueError(f"{path!r} is not in a directory plugins/profile/<time>, so pass logdir, the run's directory.")
    return "/".join(parts[:-4]) or "."
