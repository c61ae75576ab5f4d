"""Fresh processes, in which TensorFlow has been imported and nothing been done with it.

Each is forked from a server that has imported everything and created no device, so a process costs a fraction of a
second instead of TensorFlow's import.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

# How everything is measured: under the allocator that serves GPUs, with oneDNN.
SETTINGS = {
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # NumPy's algebra would start threads, and only what has none can be forked.
    "OPENBLAS_NUM_THREADS": "1",
}

ONE, DEFAULT = "one", "default"
THREADS = (ONE, DEFAULT)

_TIMEOUT_S = 600


class ProcessError(RuntimeError):
    """A process failed, died or took too long; the text says which."""


def in_process(
    function: Callable[..., Any], *arguments: Any, threads: str, environment: Mapping[str, str] | None = None
) -> Any:
    """What `function` returns in a fresh process.

    Args:
        function: of a module; it and its arguments have to be picklable.
        arguments: passed on.
        threads: ONE for one inter-op thread, DEFAULT for TensorFlow's own choice.
        environment: variables to set before TensorFlow creates its devices.

    Raises:
        ProcessError: it failed.
    """
    context = _context()
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(there, function, arguments, threads, dict(environment or {})))
    process.start()
    there.close()
    try:
        if not here.poll(_TIMEOUT_S):
            raise ProcessError(f"{function.__name__}{arguments} took longer than {_TIMEOUT_S} s.")
        failure, answer = here.recv()
    except EOFError:
        process.join()
        raise ProcessError(f"{function.__name__}{arguments} died with exit code {process.exitcode}.") from None
    finally:
        if process.is_alive():
            process.join(10)
            process.kill()
        here.close()
    if failure is not None:
        raise ProcessError(failure)
    return answer


def in_new_interpreter(function: Callable[..., None], *arguments: Any) -> None:
    """Calls `function` in a new interpreter, whose processes come from a server of its own.

    Processes of one server have the addresses that it had, and so the same one of the orders that addresses decide.

    Args:
        function: of a module; it and its arguments have to be picklable.
        arguments: passed on.

    Raises:
        ProcessError: it failed, or was ended.
    """
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise ProcessError(f"{function.__name__} ended with exit code {process.exitcode}.")


@functools.cache
def _context() -> ForkServerContext:
    os.environ.update(SETTINGS)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.preloaded"])
    return context


def _run(
    connection: Connection,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    threads: str,
    environment: dict[str, str],
) -> None:
    os.environ.update(environment)
    # Only here: the process that asks has no use for TensorFlow.
    import tensorflow as tf

    if threads == ONE:
        tf.config.threading.set_inter_op_parallelism_threads(1)
    try:
        connection.send((None, function(*arguments)))
    except Exception:
        connection.send((traceback.format_exc(), None))
    connection.close()
