"""Asks XLA what it would make of a step, in another process, and waits no longer than wanted."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextvars import ContextVar
from time import monotonic

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.deadline import check_deadline
from tensorboard_plugin_memest.estimation.xla.cache import Cache
from tensorboard_plugin_memest.estimation.xla.process import CompilerProcess
from tensorboard_plugin_memest.estimation.xla.request import NotCompilableError, Request
from tensorboard_plugin_memest.memory.errors import UsageError

# Seconds after which people want to know what they wait for.
PATIENCE = 2.0

# Seconds that compiling may take where nothing else is said: most steps take a few, large ones a minute or two.
TIMEOUT = 300.0

# Settings that decide about the code that XLA makes.
_SETTINGS = ("XLA_FLAGS", "TF_XLA_FLAGS")

# Compilers at work at once, where there are cores for more than one.
_MOST_PROCESSES = 4


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
    key = _key(request)
    found = cache.get(key)
    if found is None:
        pool = _pool.get()
        found = pool.compiled(key, request, timeout) if pool else _compile(request, timeout)
        cache.put(key, found)
    return found


def compile_ahead(request: Request, timeout: float) -> None:
    """Has a step compiled meanwhile, so that `compiled` need not wait that long; nothing outside of `compilers`."""
    pool, key = _pool.get(), _key(request)
    if pool is not None and Cache().get(key) is None:
        pool.begin(key, request, timeout)


@contextlib.contextmanager
def compilers() -> Iterator[None]:
    """Inside, compilers that were started stay ready for the next step, and steps can be compiled ahead."""
    if _pool.get() is not None:
        yield
        return
    pool = _Pool(max(1, min(_MOST_PROCESSES, _cores() // 2)))
    token = _pool.set(pool)
    try:
        yield
    finally:
        _pool.reset(token)
        pool.close()


class _Pool:
    """Threads that each keep a compiler."""

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count, "memest-xla")
        self._own = threading.local()
        self._compilers: list[CompilerProcess] = []
        self._asked: dict[str, Future[bytes]] = {}
        self._is_closed = False
        self._told = _Told()

    def begin(self, key: str, request: Request, timeout: float) -> Future[bytes]:
        if key not in self._asked:
            self._asked[key] = self._threads.submit(self._compile, request, timeout)
        return self._asked[key]

    def compiled(self, key: str, request: Request, timeout: float) -> bytes:
        answer = self.begin(key, request, timeout)
        begun = monotonic()
        try:
            while True:
                try:
                    return answer.result(0.05)
                except NotYet:
                    check_deadline()
                    self._told.waiting(monotonic() - begun)
        except CancelledError:
            raise NotCompilableError("it was not waited for") from None
        finally:
            self._asked.pop(key, None)

    def close(self) -> None:
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for one in list(self._compilers):
            one.end()
        self._threads.shutdown()
        for one in self._compilers:
            one.end()
        self._told.end()

    def _compile(self, request: Request, timeout: float) -> bytes:
        if not hasattr(self._own, "compiler"):
            self._own.compiler = CompilerProcess()
            self._compilers.append(self._own.compiler)
        if self._is_closed:
            raise NotCompilableError("it was not waited for")
        found: bytes = self._own.compiler.compile(request, timeout)
        return found


_pool: ContextVar[_Pool | None] = ContextVar("memest_compilers", default=None)


def _key(request: Request) -> str:
    settings = [os.environ.get(name, "") for name in _SETTINGS]
    return request.digest(tf.__version__, tf.version.GIT_VERSION, keras.__version__, str(_cores()), *settings)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _compile(request: Request, timeout: float) -> bytes:
    process, told = CompilerProcess(), _Told()
    try:
        return process.compile(request, timeout, told.waiting)
    finally:
        process.end()
        told.end()


class _Told:
    """What people are told while they wait; nothing where they need not wait for long."""

    def __init__(self) -> None:
        self._shown = 0
        self._begun = monotonic()

    def waiting(self, seconds: float) -> None:
        if seconds >= max(PATIENCE, self._shown + 1) and (not self._shown or sys.stderr.isatty()):
            self._shown = max(1, int(seconds))
            _show(f"memest: XLA compiles the step to tell its memory, {int(seconds)} s ...")

    def end(self) -> None:
        if self._shown:
            _show(f"memest: XLA took {monotonic() - self._begun:.1f} s.", end="\n")


def _show(text: str, end: str = "") -> None:
    # A terminal shows one line that changes, a log file the first and the last.
    is_terminal = sys.stderr.isatty()
    print(f"\r\x1b[K{text}" if is_terminal else text, end=end if is_terminal else "\n", file=sys.stderr, flush=True)
