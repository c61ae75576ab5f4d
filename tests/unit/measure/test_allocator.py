"""Allocator statistics in this process, and of devices this machine does not have."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.client import device_lib

from tensorboard_plugin_memest.measure import allocator as module
from tensorboard_plugin_memest.measure.allocator import (
    DeviceAllocator,
    QuickAllocator,
    Reading,
    device_limits,
    find_allocators,
)


@pytest.fixture
def cpu() -> DeviceAllocator:
    (allocator,) = find_allocators().allocators
    assert isinstance(allocator, DeviceAllocator)
    assert allocator.device == "CPU:0"
    return allocator


def test_current_rises_by_a_tensor_s_bytes_and_falls_with_it(cpu):
    before = cpu.read().current
    kept = tf.random.uniform((1000, 1000))
    held = cpu.read().current - before
    del kept
    # A chunk is handed out whole where splitting it is not worth while: at most twice the tensor.
    assert 4_000_000 <= held < 8_000_000
    assert cpu.read().current == before


def test_the_peak_stays_until_it_is_reset(cpu):
    kept = tf.random.uniform((1000, 1000))
    high = cpu.read().current
    del kept
    assert cpu.read().peak >= high
    cpu.reset()
    reading = cpu.read()
    assert reading.peak == reading.current < high


def test_what_is_asked_on_the_short_way_is_what_everyone_is_told(cpu):
    assert type(cpu) is QuickAllocator
    everyone = DeviceAllocator("CPU:0", cpu.source, None)
    kept = tf.zeros((1000, 1000))
    assert cpu.read() == everyone.read()
    del kept
    assert cpu.read() == everyone.read()
    assert cpu.read().current < cpu.read().peak
    cpu.reset()
    assert everyone.read().peak == cpu.read().current


def test_a_context_that_gave_up_its_handle_is_asked_on_the_long_way(cpu, monkeypatch):
    monkeypatch.setattr(cpu, "_context", SimpleNamespace(_context_handle=None))
    asked = []
    monkeypatch.setattr(tf.config.experimental, "reset_memory_stats", asked.append)
    assert cpu.read() == DeviceAllocator("CPU:0", "", None).read()
    cpu.reset()
    assert asked == ["CPU:0"]


def test_a_tensorflow_with_other_names_is_asked_as_everyone_does(monkeypatch):
    monkeypatch.delattr(pywrap_tfe, "TFE_GetMemoryInfo")
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", lambda device: {"current": 1, "peak": 2})
    (allocator,) = find_allocators().allocators
    assert allocator.read() == Reading(1, 2)


def test_device_limits_are_those_of_tensorflow_s_own_list():
    # For a CPU TensorFlow names 256 MiB whatever there is, so only the reading itself is held against its list.
    listed = {":".join(d.name.split(":")[-2:]): d.memory_limit for d in device_lib.list_local_devices()}
    assert device_limits() == listed
    assert listed["CPU:0"] > 0


def device(name: str) -> SimpleNamespace:
    return SimpleNamespace(name=f"/device:{name}", device_type=name.split(":")[0])


@pytest.fixture
def machine(monkeypatch):
    """A machine with given devices and statistics, as TensorFlow would show it."""

    def build(statistics: dict[str, Reading | None], limits: dict[str, int]) -> dict[str, int]:
        resets: dict[str, int] = {}

        def get_memory_info(name: str) -> dict[str, int]:
            reading = statistics[name]
            if reading is None:
                raise ValueError(f"Allocator stats not available for device '{name}'")
            return reading._asdict()

        def reset_memory_stats(name: str) -> None:
            resets[name] = resets.get(name, 0) + 1

        monkeypatch.setattr(tf.config, "list_logical_devices", lambda: [device(name) for name in statistics])
        monkeypatch.setattr(tf.config.experimental, "get_memory_info", get_memory_info)
        monkeypatch.setattr(tf.config.experimental, "reset_memory_stats", reset_memory_stats)
        monkeypatch.setattr(module, "device_limits", lambda: limits)
        return resets

    return build


def test_every_gpu_is_found_with_its_limit_and_read_and_reset_by_name(machine, monkeypatch):
    monkeypatch.delenv("TF_CPU_ALLOCATOR_USE_BFC", raising=False)
    resets = machine(
        {"CPU:0": None, "GPU:0": Reading(11, 22), "GPU:1": Reading(33, 44)},
        {"CPU:0": 256 * 2**20, "GPU:0": 8 * 2**30},
    )
    found = find_allocators()
    assert [(a.device, a.source, a.limit_bytes) for a in found.allocators] == [
        ("GPU:0", "TensorFlow's BFC allocator", 8 * 2**30),
        ("GPU:1", "TensorFlow's BFC allocator", None),
    ]
    assert [a.read() for a in found.allocators] == [Reading(11, 22), Reading(33, 44)]
    found.allocators[1].reset()
    assert resets == {"GPU:1": 1}
    # Whoever trains on a GPU is not told to change the CPU's allocator.
    assert found.notes == ()


def test_beside_a_gpu_an_exact_cpu_is_measured_too(machine, monkeypatch):
    monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "1")
    machine({"CPU:0": Reading(1, 2), "GPU:0": Reading(3, 4)}, {})
    assert [a.device for a in find_allocators().allocators] == ["GPU:0", "CPU:0"]


def test_a_gpu_without_statistics_gets_a_note(machine):
    machine({"CPU:0": None, "GPU:0": None}, {})
    found = find_allocators()
    assert found.allocators == ()
    assert found.notes[0].startswith("GPU:0: TensorFlow keeps no memory statistics of this device")


def test_cuda_s_own_allocator_is_named(machine, monkeypatch):
    monkeypatch.setenv("TF_GPU_ALLOCATOR", "cuda_malloc_async")
    machine({"CPU:0": None, "GPU:0": Reading(1, 2)}, {})
    assert find_allocators().allocators[0].source == "CUDA's asynchronous allocator"


@pytest.mark.parametrize(("megabytes", "limit"), [("2048", 2**31), ("0", None), ("much", None), (None, None)])
def test_the_cpu_s_limit_is_the_variable_s_megabytes(machine, monkeypatch, megabytes, limit):
    monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "true")
    if megabytes is None:
        monkeypatch.delenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", raising=False)
    else:
        monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", megabytes)
    machine({"CPU:0": Reading(1, 2)}, {})
    assert find_allocators().allocators[0].limit_bytes == limit
