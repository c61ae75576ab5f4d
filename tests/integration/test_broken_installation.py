"""TensorBoard starts, and the tab explains itself, whatever is wrong with the installation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.plugin import unbuilt
from tests.installation import copy_without_frontend, tensorboard_of
from tests.integration.http import ask, get, is_active, wait_for
from tests.samples import sample_estimate

LOADERS = {"fast": (), "slow": ("--load_fast=false",)}


@pytest.fixture(scope="module")
def logdir(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("logs")
    with RunWriter(place / "run") as writer:
        writer.write_estimate(sample_estimate())
    return place


@pytest.fixture
def package(tmp_path) -> Path:
    """The folder of a copy of the package, without the frontend."""
    return copy_without_frontend(tmp_path / "site")


def wait_for_data(server: str) -> None:
    (run,) = wait_for(lambda: ask(server, "runs")["runs"], bool)
    assert (run["name"], run["peak_bytes"]) == ("run", sample_estimate().peak_bytes)


@pytest.mark.parametrize("loader", LOADERS)
def test_without_its_frontend(logdir, package, loader):
    with tensorboard_of(package.parent, logdir, *LOADERS[loader]) as server:
        wait_for_data(server)
        assert is_active(server)
        assert get(f"{server}data/plugin/memest/index.js") == (
            200,
            "text/javascript; charset=utf-8",
            unbuilt.MODULE.encode(),
        )


def test_with_a_frontend(logdir, package):
    """The copy is really what is served: this frontend is nowhere else."""
    static = package / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.js").write_text("export function render() {} // of the copy")
    (static / "assets" / "chart-1.js").write_text("export const chart = 1;")
    with tensorboard_of(package.parent, logdir, "--path_prefix", "/x") as server:
        assert get(f"{server}data/plugin/memest/index.js")[2] == b"export function render() {} // of the copy"
        assert get(f"{server}data/plugin/memest/assets/chart-1.js") == (
            200,
            "text/javascript; charset=utf-8",
            b"export const chart = 1;",
        )


@pytest.mark.parametrize("loader", LOADERS)
def test_without_tensorflow(logdir, package, loader):
    """A module that refuses stands before the real one. What the plugin shares with the training needs none."""
    for name in ("tensorflow", "keras"):
        (package.parent / f"{name}.py").write_text("raise ImportError('not here')")
    there = {**os.environ, "PYTHONPATH": str(package.parent)}
    for name in ("tensorflow", "keras"):
        ran = subprocess.run(
            [sys.executable, "-c", f"import {name}"], env=there, cwd=package.parent, capture_output=True
        )
        assert b"not here" in ran.stderr
    with tensorboard_of(package.parent, logdir, *LOADERS[loader]) as server:
        wait_for_data(server)
        answer = ask(server, "overview", run="run")
        assert answer["estimate"]["peak_bytes"] == sample_estimate().peak_bytes
        assert answer["problems"] == []


def test_the_plugin_does_not_import_tensorflow_where_it_is():
    code = (
        "import sys; from tensorboard.plugins import base_plugin;"
        "from tensorboard_plugin_memest.plugin.loader import MemestLoader;"
        "MemestLoader().load(base_plugin.TBContext(data_provider=None)).get_plugin_apps();"
        "print(sorted({'tensorflow', 'keras'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]"


def test_with_a_module_that_cannot_be_imported(logdir, package):
    (package / "plugin" / "plugin.py").write_text("raise ImportError('broken on purpose')")
    with tensorboard_of(package.parent, logdir) as server:
        listing = json.loads(get(f"{server}data/plugins_listing")[2])
    assert "memest" not in listing
    assert "scalars" in listing
