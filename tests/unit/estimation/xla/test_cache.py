"""What was compiled before."""

from __future__ import annotations

import os

from tensorboard_plugin_memest.estimation.xla.cache import Cache, cache_directory


def test_what_was_put_is_found_again_by_another_and_nothing_else_is(tmp_path):
    Cache(tmp_path / "new").put("one", b"x" * 1000)
    assert Cache(tmp_path / "new").get("one") == b"x" * 1000
    assert Cache(tmp_path / "new").get("other") is None


def test_files_that_are_damaged_are_as_if_they_were_not_there(tmp_path):
    cache = Cache(tmp_path)
    cache.put("one", b"content")
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"no zlib")
    assert cache.get("one") is None
    cache.put("one", b"again")
    assert cache.get("one") == b"again"


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "below")
    cache.put("one", b"content")
    assert cache.get("one") is None


def test_what_was_used_longest_ago_goes_first(tmp_path):
    cache = Cache(tmp_path, largest=250)
    for age, key in enumerate(("newest", "older", "oldest")):
        cache.put(key, os.urandom(100))
        path = next(path for path in tmp_path.iterdir() if path.name.startswith(f"{key}."))
        os.utime(path, (10**9 - age, 10**9 - age))
    cache.put("now", os.urandom(100))
    assert [key for key in ("now", "newest", "older", "oldest") if cache.get(key)] == ["now", "newest"]


def test_the_directory_is_the_users_or_the_one_that_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("MEMEST_CACHE_DIR", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"
    monkeypatch.delenv("MEMEST_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "memest"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "home" / ".cache" / "memest"
