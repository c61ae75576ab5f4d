"""The device a run would train on: its kind, its allocator's pool, its limit."""

from __future__ import annotations

import os
from dataclasses import dataclass

import tensorflow as tf
from tensorflow.python.client import device_lib
from tensorflow.python.framework import test_util

from tensorboard_plugin_memest.estimation.allocator import GROWTH, PREALLOCATED
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.limits import find_device

CPU = "CPU"
GPU = "GPU"


@dataclass(frozen=True)
class Device:
    """A device to estimate for.

    Attributes:
        kind: `"CPU"` or `"GPU"`.
        pool: `"growth"` or `"preallocated"`.
        limit_bytes: what its allocator may use; None when unknown.
        threads: inter-op threads that run its ops.
        intra_threads: threads that share one op's work.
        onednn: whether the CPU's kernels are oneDNN's where TensorFlow has both.
        capability: a GPU's compute capability; None when unknown.
    """

    kind: str
    pool: str
    limit_bytes: int | None
    threads: int
    intra_threads: int = 1
    onednn: bool = False
    capability: tuple[int, int] | None = None


def training_device(kind: str | None = None) -> Device:
    """The device of this process that training would use, or the one that is named.

    Args:
        kind: `"CPU"`, `"GPU"`, the name of a GPU or of a cloud instance type for an idle one, or None for the first GPU
            that TensorFlow sees, else the CPU.

    Raises:
        ValueError: `kind` is something else.
    """
    if kind is not None and (not isinstance(kind, str) or kind.upper() not in (CPU, GPU)):
        return _named(kind)
    gpus = tf.config.list_physical_devices("GPU")
    chosen = kind.upper() if kind else (GPU if gpus else CPU)
    if chosen == CPU:
        return Device(CPU, GROWTH, _cpu_limit(), _threads(), _intra_threads(), _onednn())
    grows = bool(gpus) and tf.config.experimental.get_memory_growth(gpus[0])
    limit = _gpu_limit() if gpus else None
    return Device(GPU, GROWTH if grows else PREALLOCATED, limit, 1, capability=_capability(gpus))


def _named(name: object) -> Device:
    try:
        model = find_device(name) if isinstance(name, str) else None
    except UsageError:
        model = None
    if model is None:
        raise UsageError(
            f"device must be 'CPU', 'GPU', the name of a GPU such as 'RTX 3080' or None (the device this process would "
            f"train on), not {name!r}."
        )
    return Device(GPU, PREALLOCATED, model.usable_bytes, 1, capability=model.compute_capability)


def _cpu_limit() -> int | None:
    # The host's memory is no such limit: it is shared with everything else that runs.
    if os.environ.get("TF_CPU_ALLOCATOR_USE_BFC", "").lower() not in ("1", "true"):
        return None
    try:
        return int(os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"]) * 2**20
    except (KeyError, ValueError):
        return None


def _threads() -> int:
    # 0 leaves the number to TensorFlow, which takes one for each core it may use.
    chosen: int = tf.config.threading.get_inter_op_parallelism_threads()
    return chosen or _cores()


def _intra_threads() -> int:
    chosen: int = tf.config.threading.get_intra_op_parallelism_threads()
    return chosen or _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _onednn() -> bool:
    # Follows TF_ENABLE_ONEDNN_OPTS; where that is unset, it depends on the build and on what the processor can.
    return bool(test_util.IsMklEnabled())


def _gpu_limit() -> int | None:
    for device in device_lib.list_local_devices():
        if device.device_type == GPU:
            return int(device.memory_limit)
    return None


def _capability(gpus: list[tf.config.PhysicalDevice]) -> tuple[int, int] | None:
    found = tf.config.experimental.get_device_details(gpus[0]).get("compute_capability") if gpus else None
    return (int(found[0]), int(found[1])) if found else None
