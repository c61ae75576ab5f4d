"""An installation of the package that a test may break."""

from __future__ import annotations

import shutil
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import tensorboard_plugin_memest.plugin
from tests.server import tensorboard_process

PACKAGE = Path(tensorboard_plugin_memest.plugin.__file__).parents[1]


def copy_without_frontend(place: Path) -> Path:
    """Copies the package without its built frontend into `place`, entry point and all; gives the package's folder."""
    shutil.copytree(PACKAGE, place / PACKAGE.name, ignore=shutil.ignore_patterns("static", "__pycache__"))
    about = place / "tensorboard_plugin_memest-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorboard-plugin-memest\nVersion: 0.1.0\n")
    entry = "memest = tensorboard_plugin_memest.plugin.loader:MemestLoader"
    (about / "entry_points.txt").write_text(f"[tensorboard_plugins]\n{entry}\n")
    return place / PACKAGE.name


def tensorboard_of(place: Path, logdir: Path, *arguments: str) -> AbstractContextManager[str]:
    """A `tensorboard` process that finds the modules in `place` before the installed ones."""
    # The command and not `python -m`, which would find the package in the working directory first.
    script = str(Path(sys.executable).with_name("tensorboard"))
    return tensorboard_process(logdir, *arguments, command=("env", f"PYTHONPATH={place}", sys.executable, script))
