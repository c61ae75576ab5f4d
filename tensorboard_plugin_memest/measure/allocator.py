"""TensorFlow's own count of a device's memory: what is in use, and the most there ever was."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from tensorboard_plugin_memest.measure.calls import CallRecorder
from tensorboard_plugin_memest.measure.cpu_allocator import USE_BFC, WHAT_TO_DO, bfc_is_asked_for, bfc_limit

# Found once, because each of TensorFlow's modules on the way to it is a wrapper.
_statistics = tf.config.experimental


class Reading(NamedTuple):
    """What an allocator counts at one moment, in bytes.

    Attributes:
        current: bytes in use.
        peak: the most that was in use since the statistics were last reset.
    """

    current: int
    peak: int


class AllocatorStatistics(Protocol):
    """The statistics of one device's allocator."""

    @property
    def device(self) -> str:
        """`"GPU:0"`, `"CPU:0"`."""

    @property
    def source(self) -> str:
        """What is measured, in words: `"TensorFlow's BFC allocator"`."""

    @property
    def limit_bytes(self) -> int | None:
        """What the allocator may use; None when unknown."""

    def read(self) -> Reading:
        """The statistics now."""

    def reset(self) -> None:
        """Lets the peak begin again at what is in use now."""


@dataclass
class DeviceAllocator:
    """`AllocatorStatistics` of a device of this process, by `tf.config.experimental.get_memory_info`."""

    device: str
    source: str
    limit_bytes: int | None
    shared_by: int = 1

    def read(self) -> Reading:
        info = _statistics.get_memory_info(self.device)
        return Reading(info["current"], info["peak"])

    def reset(self) -> None:
        _statistics.reset_memory_stats(self.device)


class QuickAllocator(DeviceAllocator):
    """A `DeviceAllocator` that calls what `tf.config.experimental` calls, without TensorFlow's Python on the way.

    Both are asked in every step, where that Python takes more time than what it leads to. It takes names that
    TensorFlow does not promise to keep.

    Raises:
        ImportError, AttributeError: this TensorFlow has other names.
        TypeError, ValueError, tf.errors.OpError: what they name is something else, or knows no such device.
    """

    def __init__(self, device: str, source: str, limit_bytes: int | None, shared_by: int = 1) -> None:
        from tensorflow.python import pywrap_tfe
        from tensorflow.python.eager import context

        super().__init__(device, source, limit_bytes, shared_by)
        # What is kept is not the handle itself: TensorFlow may give it up, which ends what it stands for.
        self._context = context.context()
        self._get_info = pywrap_tfe.TFE_GetMemoryInfo
        self._reset_stats = pywrap_tfe.TFE_ResetMemoryStats
        self._get_info(self._context._handle, device)["peak"]

    def read(self) -> Reading:
        handle = self._context._context_handle
        if handle is None:
            return super().read()
        info = self._get_info(handle, self.device)
        # As `Reading(...)` does, without its Python.
        return tuple.__new__(Reading, (info["current"], info["peak"]))

    def reset(self) -> None:
        handle = self._context._context_handle
        if handle is None:
            super().reset()
        else:
            self._reset_stats(handle, self.device)


def _allocator_of(device: str, source: str, limit_bytes: int | None, shared_by: int = 1) -> AllocatorStatistics:
    try:
        return QuickAllocator(device, source, limit_bytes, shared_by)
    except (ImportError, AttributeError, KeyError, TypeError, ValueError, tf.errors.OpError):
        return DeviceAllocator(device, source, limit_bytes, shared_by)


@dataclass(frozen=True)
class Found:
    """The devices whose memory can be measured.

    Attributes:
        allocators: what counts it.
        notes: on devices whose memory cannot be measured, one sentence or two each.
        calls: the calls that were measured on these devices, over all runs of the process.
    """

    allocators: Sequence[AllocatorStatistics]
    notes: Sequence[str] = ()
    calls: CallRecorder = field(default_factory=CallRecorder)


_calls = CallRecorder()


def find_allocators() -> Found:
    """The devices of this process that have allocator statistics.

    GPUs always have them. The CPU has them under TensorFlow's BFC allocator (`TF_CPU_ALLOCATOR_USE_BFC=1`), and in
    part under oneDNN's, which does not count tensors under 256 KiB. Where a GPU is present the CPU's are left out
    unless they are exact: training happens on the GPU, and no one should be told to change the CPU's allocator.
    """
    devices = _own_devices()
    allocators: list[AllocatorStatistics] = []
    notes: list[str] = []
    accelerators = [device for device in devices if device.device_type != "CPU"]
    limits = device_limits() if accelerators else {}
    for device in accelerators:
        name = _short(device.name)
        if _has_statistics(name):
            allocators.append(_allocator_of(name, _source(device), limits.get(name) or None))
        else:
            notes.append(
                f"{name}: TensorFlow keeps no memory statistics of this device, so nothing was measured on it."
            )
    # Several logical CPUs share one allocator; one of them stands for all.
    cpus = [_short(device.name) for device in devices if device.device_type == "CPU"]
    if cpus:
        _find_on_cpu(cpus, bool(accelerators), allocators, notes)
    return Found(tuple(allocators), tuple(notes), _calls)


def _own_devices() -> list[Any]:
    """The devices of this process: one that works with others sees theirs, too."""
    from tensorflow.python.eager import context

    devices = tf.config.list_logical_devices()
    here = context.context()
    # TensorFlow has no public name for either.
    server = getattr(here, "_collective_ops_server_def", None) or getattr(here, "_server_def", None)
    if server is None:
        return list(devices)
    own = f"/job:{server.job_name}/replica:0/task:{server.task_index}/"
    return [device for device in devices if device.name.startswith(own)]


def _find_on_cpu(
    cpus: Sequence[str], beside_accelerator: bool, allocators: list[AllocatorStatistics], notes: list[str]
) -> None:
    cpu = cpus[0]
    asked_for_bfc = bfc_is_asked_for()
    counted = _has_statistics(cpu)
    if counted and asked_for_bfc:
        allocators.append(_allocator_of(cpu, "TensorFlow's BFC allocator", bfc_limit(), len(cpus)))
    elif beside_accelerator:
        return
    elif counted:
        # Its own limit is the host's memory, not one that anybody set.
        allocators.append(_allocator_of(cpu, "oneDNN's allocator, tensors of 256 KiB and more", None, len(cpus)))
        notes.append(f"{cpu}: oneDNN's allocator does not count tensors under 256 KiB. {WHAT_TO_DO}")
    elif asked_for_bfc:
        notes.append(
            f"{cpu}: {USE_BFC} was set after TensorFlow had begun, so there are no memory statistics. {WHAT_TO_DO}"
        )
    else:
        notes.append(f"{cpu}: TensorFlow's default CPU allocator keeps no memory statistics. {WHAT_TO_DO}")


def _short(name: str) -> str:
    """`"GPU:0"` of `"/device:GPU:0"`."""
    return ":".join(name.split(":")[-2:])


def _has_statistics(name: str) -> bool:
    try:
        _statistics.get_memory_info(name)
    except (ValueError, tf.errors.OpError):
        return False
    return True


def _source(device: Any) -> str:
    if device.device_type == "GPU" and os.environ.get("TF_GPU_ALLOCATOR") == "cuda_malloc_async":
        return "CUDA's asynchronous allocator"
    return "TensorFlow's BFC allocator" if device.device_type == "GPU" else "TensorFlow's allocator"


def device_limits() -> dict[str, int]:
    """The `memory_limit` of every device of this process, in bytes, by short name; empty where it cannot be read.

    TensorFlow shows it only through `device_lib.list_local_devices`, which creates every device a second time. The
    devices that exist know it too; reading it there takes names that TensorFlow does not promise to keep.
    """
    try:
        from tensorflow.python import pywrap_tfe
        from tensorflow.python.client import pywrap_tf_session
        from tensorflow.python.eager import context

        listed = pywrap_tfe.TFE_ContextListDevices(context.context()._handle)
        limits = {}
        for index in range(pywrap_tf_session.TF_DeviceListCount(listed)):
            name = pywrap_tf_session.TF_DeviceListName(listed, index)
            limits[_short(name)] = int(pywrap_tf_session.TF_DeviceListMemoryBytes(listed, index))
        pywrap_tf_session.TF_DeleteDeviceList(listed)
        return limits
    except (ImportError, AttributeError, TypeError):
        return {}
