"""Asks XLA what it would make of a step, in another process, and waits no longer than wanted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.xla import compiler
from tensorboard_plugin_memest.estimation.xla.cache import Cache
from tensorboard_plugin_memest.estimation.xla.request import NotCompilableError, Request
from tensorboard_plugin_memest.memory.errors import UsageError

# Seconds after which people want to know what they wait for.
PATIENCE = 2.0

# Seconds that compiling may take where nothing else is said: most steps take a few, large ones a minute or two.
TIMEOUT = 300.0

# Settings that decide about the code that XLA makes.
_SETTINGS = ("XLA_FLAGS", "TF_XLA_FLAGS")

# What only a process that trains needs: the compiler's has no GPU and allocates nothing worth counting.
_NOT_FOR_COMPILING = ("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")


def checked_timeout(seconds: float | None) -> float:
    """The `compile_timeout` of `estimate` in seconds.

    Raises:
        ValueError: it is no number of seconds.
    """
    if seconds is None:
        return TIMEOUT
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise UsageError(
            f"compile_timeout={seconds!r}: pass the seconds that XLA may take to compile the step, 0 for an "
            f"approximation without it, or None for {TIMEOUT:g}."
        )
    return float(seconds)


def compiled(request: Request, timeout: float, cache: Cache | None = None) -> bytes:
    """The compiler's account of a step, a serialized HloProto; from the cache, if it was asked before.

    Args:
        request: the step.
        timeout: seconds to wait at most.
        cache: where answers are kept; None for the user's cache directory.

    Raises:
        NotCompilableError: XLA cannot compile it, or not in time; the text says why.
    """
    cache = cache or Cache()
    cores = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    settings = [os.environ.get(name, "") for name in _SETTINGS]
    key = request.digest(tf.__version__, tf.version.GIT_VERSION, keras.__version__, cores, *settings)
    found = cache.get(key)
    if found is None:
        found = _compile(request, timeout)
        cache.put(key, found)
    return found


def _compile(request: Request, timeout: float) -> bytes:
    with tempfile.TemporaryDirectory(prefix="memest-") as name:
        folder = Path(name)
        (folder / "header.json").write_text(request.header())
        (folder / "graph.pb").write_bytes(request.graph)
        with (folder / "log.txt").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", compiler.__spec__.name, name],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            try:
                _wait(process, timeout)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if (folder / "compiled.hlo").exists():
            return (folder / "compiled.hlo").read_bytes()
        error = folder / "error.txt"
        if not error.exists():
            raise NotCompilableError(f"the compiler's process ended with code {process.returncode}")
        reason = error.read_text().partition("\n")[0]
        raise NotCompilableError(f"XLA refused it ({reason[:400]})")


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_COMPILING}
    return {
        **kept,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # The same packages as here, wherever this process has them from.
        "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
    }


def _wait(process: subprocess.Popen[bytes], timeout: float) -> None:
    begun = time.monotonic()
    shown = 0
    try:
        while True:
            try:
                process.wait(0.05)
                return
            except subprocess.TimeoutExpired:
                pass
            seconds = time.monotonic() - begun
            if seconds > timeout:
                raise NotCompilableError(f"XLA did not compile it within compile_timeout={timeout:g} seconds")
            if seconds >= max(PATIENCE, shown + 1) and (not shown or sys.stderr.isatty()):
                shown = int(seconds)
                _show(f"memest: XLA compiles the step to tell its memory, {shown} s ...")
    finally:
        if shown:
            _show(f"memest: XLA took {time.monotonic() - begun:.1f} s.", end="\n")


def _show(text: str, end: str = "") -> None:
    # A terminal shows one line that changes, a log file the first and the last.
    is_terminal = sys.stderr.isatty()
    print(f"\r\x1b[K{text}" if is_terminal else text, end=end if is_terminal else "\n", file=sys.stderr, flush=True)
