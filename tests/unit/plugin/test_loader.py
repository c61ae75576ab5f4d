"""The entry point."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from importlib.metadata import entry_points

import pytest
from tensorboard.plugins import base_plugin

from tensorboard_plugin_memest.plugin.loader import MemestLoader
from tensorboard_plugin_memest.plugin.plugin import MemestPlugin


@pytest.mark.parametrize(
    ("given", "kept"),
    [({}, {"memest": 1}), ({"images": 5}, {"images": 5, "memest": 1}), ({"memest": 9}, {"memest": 9})],
)
def test_the_users_number_of_samples_wins(given, kept):
    flags = Namespace(samples_per_plugin=given)
    MemestLoader().fix_flags(flags)
    assert flags.samples_per_plugin == kept


def test_it_loads_the_plugin():
    plugin = MemestLoader().load(base_plugin.TBContext(data_provider=None))
    assert isinstance(plugin, MemestPlugin)


def test_tensorboard_finds_it():
    (entry,) = entry_points(group="tensorboard_plugins", name="memest")
    assert entry.load() is MemestLoader


def test_importing_it_imports_almost_nothing():
    code = (
        "import sys, tensorboard.plugins.base_plugin; before = set(sys.modules);"
        "import tensorboard_plugin_memest.plugin.loader; print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    ours = {name for name in ran.stdout.split() if name.startswith("tensorboard_plugin_memest")}
    assert ours == {
        "tensorboard_plugin_memest",
        "tensorboard_plugin_memest.plugin",
        "tensorboard_plugin_memest.plugin.loader",
    }
    assert not {"tensorflow", "keras", "numpy"} & set(ran.stdout.split())
