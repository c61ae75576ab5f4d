"""The driver's totals, on machines that have no driver."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tensorboard_plugin_memest.measure.allocator import Found
from tensorboard_plugin_memest.measure.nvml import DriverTotals, Gpu, driver_totals, find_gpus
from tensorboard_plugin_memest.measure.recording import Recording
from tensorboard_plugin_memest.memory.measured import DeviceTotals
from tests.unit.measure.logged import Fake, read_log

GIB = 2**30


class FakeNvml:
    """Three GPUs; what is in use is given, the last is repeated."""

    def __init__(self, used=(5 * GIB,), own=(3 * GIB,), models=("A", "A", "A"), fails=False):
        self.used, self.own, self.models, self.fails = list(used), list(own), models, fails

    def nvmlInit(self):  # noqa: N802
        if self.fails:
            raise RuntimeError("driver not loaded")

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self.models)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return self.models[handle].encode()

    def nvmlDeviceGetUUID(self, handle):  # noqa: N802
        return f"GPU-{handle}abc"

    def nvmlDeviceGetMemoryInfo(self, handle):  # noqa: N802
        return SimpleNamespace(total=24 * GIB, used=self.used.pop(0) if len(self.used) > 1 else self.used[0])

    def nvmlDeviceGetComputeRunningProcesses(self, handle):  # noqa: N802
        own = self.own.pop(0) if len(self.own) > 1 else self.own[0]
        return [SimpleNamespace(pid=1, usedGpuMemory=GIB), SimpleNamespace(pid=42, usedGpuMemory=own)]


@pytest.mark.parametrize(
    ("environment", "handles"),
    [
        ({}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, [2, 0]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-1a, 2"}, [1, 2]),
        ({"CUDA_VISIBLE_DEVICES": "1,2,-1,0"}, [1, 2]),
    ],
)
def test_which_gpus_they_are_says_the_environment(environment, handles):
    found = find_gpus(["GPU:0", "GPU:1"], FakeNvml(), environment)
    assert [(gpu.device, gpu.handle, gpu.model) for gpu in found.gpus] == [
        ("GPU:0", handles[0], "A"), ("GPU:1", handles[1], "A"),
    ]  # fmt: skip
    assert found.note is None


@pytest.mark.parametrize(
    ("environment", "models"),
    [
        ({"CUDA_VISIBLE_DEVICES": "MIG-1234"}, ("A", "A", "A")),
        ({"CUDA_VISIBLE_DEVICES": "1"}, ("A", "A", "A")),
        ({}, ("A", "B", "A")),
    ],
)
def test_what_cannot_be_told_apart_is_not_guessed(environment, models):
    gpus, note = find_gpus(["GPU:0", "GPU:1"], FakeNvml(models=models), environment)
    assert gpus == ()
    assert note.startswith("The driver's totals were not read")


def test_places_are_places_where_cuda_counts_by_them():
    nvml = FakeNvml(models=("A", "B", "A"))
    assert len(find_gpus(["GPU:0", "GPU:1"], nvml, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).gpus) == 2


def test_the_most_of_all_samples_is_told():
    nvml = FakeNvml(used=(5 * GIB, 9 * GIB, 6 * GIB), own=(3 * GIB, None, 2 * GIB))
    totals = DriverTotals(nvml, (Gpu("GPU:0", 0, "A"),), process=42)
    for _ in range(3):
        totals.sample()
    assert totals.totals == [DeviceTotals("GPU:0", "A", 24 * GIB, 9 * GIB, 3 * GIB)]


def test_a_process_that_the_driver_does_not_know_has_no_part():
    totals = DriverTotals(FakeNvml(), (Gpu("GPU:0", 0, "A"),), process=43)
    totals.sample()
    assert totals.totals == [DeviceTotals("GPU:0", "A", 24 * GIB, 5 * GIB, None)]


def test_without_a_gpu_nobody_is_told_and_without_the_package_what_to_do(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")

    def missing():
        raise ImportError

    assert driver_totals([], missing) == (None, None)
    assert driver_totals(["GPU:0"], missing)[1].endswith("pip install nvidia-ml-py.")
    assert "driver not loaded" in driver_totals(["GPU:0"], lambda: FakeNvml(fails=True))[1]
    found, note = driver_totals(["GPU:0"], FakeNvml)
    assert (type(found), note) == (DriverTotals, None)


def test_totals_are_written_with_the_peaks_when_they_are_new(tmp_path):
    nvml = FakeNvml(used=(5 * GIB, 5 * GIB, 9 * GIB))
    recording = Recording(
        tmp_path, Found((Fake([(1, 2)]),)), totals=DriverTotals(nvml, (Gpu("GPU:0", 0, "A"),), process=42)
    )
    for _ in range(3):
        recording.begin()
        recording.end()
        recording.write()
    recording.close()
    written = [record.used_bytes for record in read_log(tmp_path).records if isinstance(record, DeviceTotals)]
    assert written == [5 * GIB, 9 * GIB]
