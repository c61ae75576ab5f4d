"""Python in a process of its own: TensorFlow reads some environment variables once, when it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

# The allocator that serves GPUs, on the CPU; one order of execution as far as that can be had.
EXACT = {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_ENABLE_ONEDNN_OPTS": "1"}

_OWN = ("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB", "TF_ENABLE_ONEDNN_OPTS")


def run_python(code: str, *arguments: str, environment: dict[str, str] = EXACT) -> subprocess.CompletedProcess[str]:
    """Runs `code` with `arguments`; of TensorFlow's allocator switches only those of `environment` are set."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OWN}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env={**inherited, "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def answer_of(code: str, *arguments: str, environment: dict[str, str] = EXACT) -> Any:
    """What the last line that `code` printed says in JSON; its error as this process's when it failed."""
    finished = run_python(code, *arguments, environment=environment)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])
