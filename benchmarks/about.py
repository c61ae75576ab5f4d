"""What every benchmark says of itself, and where it says it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

from rich.console import Console

from benchmarks.fingerprint import tensorflow_distribution
from benchmarks.processes import SETTINGS


def about() -> dict[str, Any]:
    """Versions, machine and settings, for the JSON."""
    packages = ("keras", tensorflow_distribution(), "tensorboard-plugin-memest")
    return {
        "versions": {name: metadata.version(name) for name in packages},
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "settings": SETTINGS,
    }


def console() -> Console:
    """The terminal; wide enough for the tables where it is none."""
    found = Console()
    return found if found.is_terminal else Console(width=180)
