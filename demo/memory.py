"""How much memory a process started now could use."""

from __future__ import annotations

from pathlib import Path


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that can still be used: what the kernel calls available, or what a control group leaves, if that is less.

    Args:
        root: where `proc` and `sys` are.

    Returns:
        None on a system that does not tell, such as macOS.
    """
    try:
        meminfo = (root / "proc/meminfo").read_text()
    except OSError:
        return None
    available = next((int(line.split()[1]) * 1024 for line in meminfo.splitlines() if "MemAvailable" in line), None)
    rests = [available, *(_rest_of_group(folder) for folder in _control_groups(root))]
    return min((rest for rest in rests if rest is not None), default=None)


def _control_groups(root: Path) -> list[Path]:
    """The folders of this process's memory control groups (version 2, then 1), up to the outermost."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    folders: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount = root / "sys/fs/cgroup"
        elif "memory" in controllers.split(","):
            mount = root / "sys/fs/cgroup/memory"
        else:
            continue
        # In a container the path may be the host's, of which only the mount itself is visible.
        folder = mount / path.strip("/")
        folders += [group for group in (folder, *folder.parents) if group.is_relative_to(mount)]
    return folders


def _rest_of_group(folder: Path) -> int | None:
    """Bytes below the group's limit; the page cache, which the kernel gives back first, does not count as used."""
    for limit, usage, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most = (folder / limit).read_text().strip()
            used = int((folder / usage).read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except OSError:
            continue
        if most != "max":
            return int(most) - used + int(stat.get(cache, 0))
    return None
