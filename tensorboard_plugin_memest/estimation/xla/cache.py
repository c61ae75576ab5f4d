"""What was compiled before, in the user's cache directory."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zlib
from pathlib import Path

# Bytes that all entries may take; the ones used longest ago go first.
LARGEST = 256 * 2**20

_SUFFIX = ".hlo.z"


def cache_directory() -> Path:
    """Where compiled steps are kept: `MEMEST_CACHE_DIR`, else `memest` in the user's cache directory."""
    chosen = os.environ.get("MEMEST_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "memest"


class Cache:
    """Bytes by key, compressed, in files. What cannot be read or written is as if it was not there."""

    def __init__(self, directory: Path | None = None, largest: int = LARGEST) -> None:
        self._directory = directory
        self._largest = largest

    def get(self, key: str) -> bytes | None:
        """What `put` got for `key`, if it is still there."""
        with contextlib.suppress(OSError, RuntimeError, zlib.error):
            path = self._path(key)
            content = zlib.decompress(path.read_bytes())
            os.utime(path)
            return content
        return None

    def put(self, key: str, content: bytes) -> None:
        """Keeps `content`; another process never sees half of it."""
        with contextlib.suppress(OSError, RuntimeError):
            path = self._path(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(zlib.compress(content))
                os.replace(name, path)
            except OSError:
                os.unlink(name)
                raise
            self._prune(path.parent)

    def _path(self, key: str) -> Path:
        return (self._directory or cache_directory()) / f"{key}{_SUFFIX}"

    def _prune(self, directory: Path) -> None:
        entries = sorted(
            ((path.stat().st_mtime, path.stat().st_size, path) for path in directory.glob(f"*{_SUFFIX}")), reverse=True
        )
        total = 0
        for _, size, path in entries:
            total += size
            if total > self._largest:
                path.unlink(missing_ok=True)
