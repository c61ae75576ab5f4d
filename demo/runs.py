"""The four runs of the demo, and how one of them gets made: whole or not at all, in a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from demo.memory import available_memory
from tensorboard_plugin_memest.memory.units import GIB, format_bytes

REPOSITORY = Path(__file__).parent.parent

# What makes a CPU hold memory most like a GPU: the allocator that serves GPUs (it also counts), and oneDNN's kernels,
# which need little scratch. How many ops run at once is left to TensorFlow, as in most scripts; it is why the peak of
# `as-asked` is told as a range.
SETTINGS = {
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "CUDA_VISIBLE_DEVICES": "-1",
}

STAMP = "demo.json"


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        name: its directory's name.
        about: what it is, in a few words.
        model: arguments of `demo.train` that choose the model and its optimizer, and what else is found out about it.
        epochs: how often its training goes through the clips.
        needs_bytes: how much memory must be available for training it: more than its process was seen to hold, which
            was 19.0, 2.0, 1.3 and 9.8 GiB.
    """

    name: str
    about: str
    model: tuple[str, ...]
    epochs: int
    needs_bytes: int


RUNS = (
    Run("as-asked", "Dense 128, Adam: what ran out", ("--advice", "15"), 1, 21 * GIB),
    Run("small", "Dense 8, Adam", ("--dense", "8"), 3, 3 * GIB),
    Run("fixed", "pooling before Flatten", ("--pool", "5"), 3, 3 * GIB),
    Run("sgd", "Dense 128, SGD", ("--optimizer", "sgd"), 1, 12 * GIB),
)


class DemoError(Exception):
    """A run could not be made; the message is for a person."""


def is_made(run: Run, runs: Path) -> bool:
    """Whether `runs` holds `run` as the present sources make it."""
    try:
        stamp = json.loads((runs / run.name / STAMP).read_text())
    except (OSError, ValueError):
        return False
    return bool(stamp == {"made_by": fingerprint()})


def make(run: Run, *, clips: Path, runs: Path, work: Path, train: bool = True) -> None:
    """Makes `run` in `runs`; it appears there only when it is whole.

    It is trained and measured where `train` is true and enough memory is available, and otherwise estimated alone,
    with a note in it that says so.

    Args:
        run: which one.
        clips: folder of the recordings.
        runs: the log directory.
        work: folder for unfinished runs and what the processes print, on the same file system as `runs`.
        train: False to leave the training out.

    Raises:
        DemoError: its process failed.
    """
    for folder in (runs, work):
        folder.mkdir(parents=True, exist_ok=True)
    unfinished = work / f"{run.name}.unfinished"
    log = work / f"{run.name}.log"
    arguments = ["--clips", str(clips), "--logdir", str(unfinished), *run.model]

    reason = _why_not(run, available_memory()) if train else "Training was left out on request."
    if reason is None:
        status = _python("demo.train", [*arguments, "--epochs", str(run.epochs)], unfinished, log)
        if status == -signal.SIGKILL:
            # The kernel ends processes so when memory runs out, whatever was available a moment before.
            reason = "Training was started, and the system ended it, most likely for want of memory."
        elif status != 0:
            raise _failure("Training", run, status, log)
    if reason is not None:
        note = f"Not trained, so nothing was measured. {reason} The estimate needs none of that memory."
        status = _python("demo.forecast", [*arguments, "--note", note], unfinished, log)
        if status != 0:
            raise _failure("Estimating", run, status, log)

    (unfinished / STAMP).write_text(json.dumps({"made_by": fingerprint()}))
    _put_in_place(unfinished, runs / run.name, work / f"{run.name}.old")


def fingerprint() -> str:
    """What a run depends on, in short: the sources of the demo and of memest (its tab apart), and the libraries."""
    digest = hashlib.sha256()
    package = REPOSITORY / "tensorboard_plugin_memest"
    sources = [*REPOSITORY.glob("demo/*.py"), REPOSITORY / "memest.py", *package.rglob("*.py")]
    for path in sorted(sources):
        if package / "plugin" not in path.parents:
            digest.update(path.relative_to(REPOSITORY).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for name in ("tensorflow", "tensorflow-cpu", "keras"):
        try:
            digest.update(f"{name} {metadata.version(name)}\0".encode())
        except metadata.PackageNotFoundError:
            continue
    return digest.hexdigest()


def _why_not(run: Run, available: int | None) -> str | None:
    """Why there is not enough memory to train `run`, as a sentence; None when there is."""
    needs = f"Training takes place where {format_bytes(run.needs_bytes)} of memory are available"
    if available is None:
        return f"{needs}; this system does not tell how much is."
    if available < run.needs_bytes:
        return f"{needs}; here it was {format_bytes(available)}."
    return None


def _python(module: str, arguments: Sequence[str], unfinished: Path, log: Path) -> int:
    """Runs a module of the demo in a process of its own; gives its exit status."""
    shutil.rmtree(unfinished, ignore_errors=True)
    with log.open("w") as output:
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=REPOSITORY,
            env={**os.environ, **SETTINGS},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode


def _failure(what: str, run: Run, status: int, log: Path) -> DemoError:
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    return DemoError(f"{what} the run {run.name!r} failed with exit status {status}. The end of {log}:\n{tail}")


def _put_in_place(finished: Path, place: Path, aside: Path) -> None:
    shutil.rmtree(aside, ignore_errors=True)
    if place.exists():
        place.rename(aside)
    finished.rename(place)
    shutil.rmtree(aside, ignore_errors=True)
