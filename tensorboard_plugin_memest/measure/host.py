"""The host's own memory: what this process holds of it, and what is left. Linux tells; other systems do not."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")


class _ResidentSet:
    """Reads this process's resident set in a few microseconds: the file stays open, for opening costs ten times it."""

    def __init__(self) -> None:
        self._file = -1
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
        if hasattr(os, "register_at_fork"):
            # What a forked process inherits is open on its parent's. To ask at each reading whose process this is would
            # be one more call of the system.
            os.register_at_fork(after_in_child=self._close)

    def __call__(self) -> int | None:
        """The bytes that the process holds of the host's memory; None where the system does not tell."""
        try:
            if self._file < 0:
                self._file = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._file, 256, 0).split()[1]) * self._page
        except (OSError, ValueError, IndexError, AttributeError):
            return None

    def _close(self) -> None:
        inherited, self._file = self._file, -1
        if inherited >= 0:
            os.close(inherited)


resident_bytes = _ResidentSet()


def available_bytes() -> int | None:
    """What a new process could use without the system swapping or killing; None where the system does not tell.

    A container's limit counts, too.
    """
    found = [number for number in (_available_on_host(), _left_in_cgroup()) if number is not None]
    return min(found, default=None)


def _available_on_host() -> int | None:
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return None


def _left_in_cgroup() -> int | None:
    """What the control group of this process may still take, pages that only cache files not counted as taken."""
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
        cached = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return None if limit == "max" else int(limit) - used + int(cached.get("inactive_file", 0))
    except (OSError, ValueError):
        return None
