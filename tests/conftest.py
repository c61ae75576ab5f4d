"""What all tests share: TensorFlow's settings, the demo's output, a real TensorBoard and a real browser."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from tests.server import tensorboard_process

REPOSITORY = Path(__file__).parent.parent

# TensorFlow reads these when it is imported or makes its first device, so they are set before any test module is
# imported: the allocator that serves GPUs, which also counts, and kernels with little scratch.
os.environ.update(
    TF_CPU_ALLOCATOR_USE_BFC="1",
    TF_ENABLE_ONEDNN_OPTS="1",
    TF_CPP_MIN_LOG_LEVEL="2",
    CUDA_VISIBLE_DEVICES="-1",
)

# How fast examples come depends on what else the machine does, and says nothing about what is tested.
settings.register_profile("memest", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memest")

# What XLA compiled for a test is not for the user to find; tests of one run share it.
_CACHE = tempfile.TemporaryDirectory(prefix="memest-tests-")
os.environ["MEMEST_CACHE_DIR"] = _CACHE.name


def pytest_collection_finish() -> None:
    """One operation at a time, so that measured peaks repeat; only where a test module has imported TensorFlow."""
    if "tensorflow" in sys.modules:
        import tensorflow as tf

        tf.config.threading.set_inter_op_parallelism_threads(1)


@dataclass(frozen=True)
class Demo:
    """The demo, as `python -m demo` left it.

    Attributes:
        runs: its log directory.
        work: where it keeps what is no run.
        trained: the runs that were trained; the others are estimated only.
        output: what it printed.
    """

    runs: Path
    work: Path
    trained: tuple[str, ...]
    output: str

    def command(self, *arguments: str) -> list[str]:
        """The command that made this, with other `arguments` behind it."""
        places = ["--runs", str(self.runs), "--work", str(self.work)]
        return [sys.executable, "-m", "demo", *places, "--train", *self.trained, *arguments]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Demo:
    """The demo's output, made once a session; its two runs that need many GiB are estimated and not trained."""
    place = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        place = place.parent  # which all workers of the session share
    made = Demo(place / "demo" / "runs", place / "demo" / "work", ("small", "fixed"), "")
    printed = place / "demo-printed.txt"
    with FileLock(place / "demo.lock"):
        if not printed.exists():
            ran = subprocess.run(
                made.command("--no-serve"), cwd=REPOSITORY, capture_output=True, text=True, timeout=540, check=False
            )
            assert ran.returncode == 0, f"The demo failed:\n{ran.stdout}\n{ran.stderr}"
            printed.write_text(ran.stdout)
    return replace(made, output=printed.read_text())


StartTensorBoard = Callable[..., str]


@pytest.fixture(scope="session")
def start_tensorboard() -> Iterator[StartTensorBoard]:
    """Starts `tensorboard` on a log directory, with further arguments, and gives its address, which ends in a slash.

    One that was started with the same arguments before is given again.
    """
    started: dict[tuple[str, ...], str] = {}
    with contextlib.ExitStack() as running:

        def start(logdir: Path | str, *arguments: str) -> str:
            key = (str(logdir), *arguments)
            if key not in started:
                started[key] = running.enter_context(tensorboard_process(logdir, *arguments))
            return started[key]

        yield start
