"""The host's memory."""

from __future__ import annotations

import gc
import os

import numpy as np

from tensorboard_plugin_memest.measure import host


def test_the_resident_set_grows_with_what_is_touched():
    gc.collect()
    before = host.resident_bytes()
    kept = np.ones(2**27, np.uint8)
    # Other tests' memory may go back to the system meanwhile.
    assert kept.nbytes / 2 < host.resident_bytes() - before < 2 * kept.nbytes


def test_what_is_available_is_no_more_than_the_machine_has(tmp_path, monkeypatch):
    found = host.available_bytes()
    assert found > 2**20
    (tmp_path / "memory.max").write_text(f"{2**20}\n")
    (tmp_path / "memory.current").write_text("500000\n")
    (tmp_path / "memory.stat").write_text("anon 100\ninactive_file 40000\n")
    monkeypatch.setattr(host, "_CGROUP", tmp_path)
    # A container's limit counts, and what only caches files is not taken.
    assert host.available_bytes() == 2**20 - 500_000 + 40_000
    (tmp_path / "memory.max").write_text("max\n")
    assert host.available_bytes() > 2**20


def test_a_system_that_tells_nothing_is_no_error(tmp_path, monkeypatch):
    for name in ("_CGROUP", "_MEMINFO", "_STATM"):
        monkeypatch.setattr(host, name, tmp_path / "missing")
    assert host.available_bytes() is None
    unknown = host._ResidentSet()
    assert (unknown(), unknown()) == (None, None)


def test_a_forked_process_tells_its_own():
    host.resident_bytes()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        before = host.resident_bytes()
        kept = np.ones(2**27, np.uint8)
        os.write(writing, str(host.resident_bytes() - before).encode())
        os._exit(int(kept[0]) - 1)
    os.waitpid(child, 0)
    assert int(os.read(reading, 100)) > 2**26
