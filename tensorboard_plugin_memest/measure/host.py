"""The host's own memory: what this process holds of it, and what is left. Linux tells; other systems do not."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """The resident set of this process: what it holds of the host's memory; None where the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


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
