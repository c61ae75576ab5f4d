"""A real `tensorboard` process."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def tensorboard_process(
    logdir: Path | str, *arguments: str, command: tuple[str, ...] = (sys.executable, "-m", "tensorboard.main")
) -> Iterator[str]:
    """A `tensorboard` process on a free port for as long as the context lasts; gives its address."""
    process = subprocess.Popen(
        [*command, "--logdir", str(logdir), "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # One that hangs before it prints its address must not hang the tests.
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        printed = []
        address = None
        for line in process.stdout:
            printed.append(line)
            if found := re.search(r"TensorBoard \S+ at (http://\S+)", line):
                address = found[1]
                break
        assert address, "tensorboard did not start:\n" + "".join(printed)
        watchdog.cancel()
        # What else it prints is read, so that it never waits for a full pipe.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield address if address.endswith("/") else f"{address}/"
    finally:
        watchdog.cancel()
        process.terminate()
        process.wait(timeout=30)
