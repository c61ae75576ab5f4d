"""A process that compiles steps, one after another: starting it, which means importing TensorFlow, takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tensorboard_plugin_memest.estimation.device import CPU
from tensorboard_plugin_memest.estimation.xla import compiler
from tensorboard_plugin_memest.estimation.xla.request import NotCompilableError, Request

# What only a process that trains needs: the compiler's allocates nothing worth counting.
_NOT_FOR_COMPILING = ("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")

# What was compiled stays in a process, so after so many steps another one takes over.
_MOST_STEPS = 16

_INTERVAL_S = 0.02


class CompilerProcess:
    """Compiles steps in a process of its own, which is started for the first and kept for the next."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._steps = 0
        self._kind = CPU

    def compile(
        self, request: Request, timeout: float, while_waiting: Callable[[float], None] = lambda _: None
    ) -> bytes:
        """The compiler's account of a step, a serialized HloProto.

        Args:
            request: the step.
            timeout: seconds to wait at most.
            while_waiting: told again and again for how many seconds it has waited.

        Raises:
            NotCompilableError: XLA cannot compile it, or not in time; the text says why.
        """
        with tempfile.TemporaryDirectory(prefix="memest-") as name:
            folder = Path(name)
            (folder / "header.json").write_text(request.header())
            (folder / "graph.pb").write_bytes(request.graph)
            try:
                code = self._compile(folder, request.target.kind, timeout, while_waiting)
            except BaseException:
                self.end()
                raise
            if (folder / "compiled.hlo").exists():
                return (folder / "compiled.hlo").read_bytes()
            error = folder / "error.txt"
            if not error.exists():
                raise NotCompilableError(f"the compiler's process ended with code {code}")
            reason = error.read_text().partition("\n")[0]
            raise NotCompilableError(f"XLA refused it ({reason[:400]})")

    def end(self) -> None:
        """Ends the process, whatever it is doing; another one is started when it is needed."""
        process, self._process, self._steps = self._process, None, 0
        if process is not None:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()

    def _compile(self, folder: Path, kind: str, timeout: float, while_waiting: Callable[[float], None]) -> int | None:
        """Waits until the answer is in `folder`. Returns the exit code of the process if it ended."""
        has_ended = self._process is not None and self._process.poll() is not None
        if self._steps >= _MOST_STEPS or has_ended or kind != self._kind:
            self.end()
        self._kind = kind
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", compiler.__spec__.name],
                env=_environment(kind),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        process = self._process
        self._steps += 1
        assert process.stdin is not None
        process.stdin.write(f"{folder}\n".encode())
        begun = time.monotonic()
        while not (folder / "done").exists():
            code = process.poll()
            if code is not None:
                return code
            seconds = time.monotonic() - begun
            if seconds > timeout:
                raise NotCompilableError(f"XLA did not compile it within compile_timeout={timeout:g} seconds")
            while_waiting(seconds)
            time.sleep(_INTERVAL_S)
        return None


def _environment(kind: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_COMPILING}
    # A GPU's compiler needs the GPU, and a little of its memory, which another process may have all but taken.
    return {
        **kept,
        **({"CUDA_VISIBLE_DEVICES": "-1"} if kind == CPU else {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # The same packages as here, wherever this process has them from.
        "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
    }
