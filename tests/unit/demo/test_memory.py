from pathlib import Path

import pytest

from demo.memory import available_memory

GIB = 2**30


def _system(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 20971520 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_without_a_control_group_it_is_what_the_kernel_calls_available(tmp_path: Path) -> None:
    assert available_memory(_system(tmp_path, {})) == 20 * GIB


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(str(8 * GIB), 8 * GIB - 3 * GIB + GIB), (str(64 * GIB), 20 * GIB), ("max", 20 * GIB)],
    ids=["lower", "higher", "none"],
)
def test_a_lower_limit_of_the_control_group_counts(tmp_path: Path, limit: str, expected: int) -> None:
    group = {"memory.max": limit, "memory.current": str(3 * GIB), "memory.stat": f"anon 1\ninactive_file {GIB}\n"}
    files = {f"sys/fs/cgroup/job/{name}": text for name, text in group.items()}
    assert available_memory(_system(tmp_path, {"proc/self/cgroup": "0::/job\n", **files})) == expected


def test_a_limit_further_out_counts_too(tmp_path: Path) -> None:
    group = {"memory.max": str(4 * GIB), "memory.current": str(GIB), "memory.stat": "anon 1\n"}
    files = {f"sys/fs/cgroup/{name}": text for name, text in group.items()}
    assert available_memory(_system(tmp_path, {"proc/self/cgroup": "0::/job/task\n", **files})) == 3 * GIB


def test_version_1_of_control_groups(tmp_path: Path) -> None:
    group = {
        "memory.limit_in_bytes": str(6 * GIB),
        "memory.usage_in_bytes": str(5 * GIB),
        "memory.stat": f"cache 9\ntotal_inactive_file {2 * GIB}\n",
    }
    files = {f"sys/fs/cgroup/memory/{name}": text for name, text in group.items()}
    cgroup = "9:cpu,cpuacct:/elsewhere\n4:memory:/\n"
    assert available_memory(_system(tmp_path, {"proc/self/cgroup": cgroup, **files})) == 3 * GIB


def test_a_system_that_does_not_tell(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="this system has no /proc/meminfo")
def test_this_machine_has_less_available_than_installed() -> None:
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    available = available_memory()
    assert available is not None
    assert 0 < available < total
