"""What the driver says of a GPU's memory, by NVML: all of a process, and all of the device.

TensorFlow's statistics count what its allocator has handed out. The driver also sees what the allocator keeps in its
pool, the CUDA context, loaded kernels and libraries, and other processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from tensorboard_plugin_memest.memory.measured import DeviceTotals

EXTRA = "pip install nvidia-ml-py"


class Nvml(Protocol):
    """What is needed of the module `pynvml`, under its names."""

    def nvmlInit(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetCount(self) -> int: ...  # noqa: N802

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any: ...  # noqa: N802

    def nvmlDeviceGetName(self, handle: Any) -> str: ...  # noqa: N802

    def nvmlDeviceGetUUID(self, handle: Any) -> str: ...  # noqa: N802

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any: ...  # noqa: N802

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Any]: ...  # noqa: N802


class Gpu(NamedTuple):
    """One GPU: TensorFlow's name of it (`"GPU:0"`), NVML's handle, and its model."""

    device: str
    handle: Any
    model: str


class FoundGpus(NamedTuple):
    """The GPUs that NVML knows, and a note on why there are none; None where nobody has to be told."""

    gpus: tuple[Gpu, ...]
    note: str | None = None


class DriverTotals:
    """The most that the driver has seen in use, over any number of samples.

    Args:
        nvml: the module `pynvml`, initialised.
        gpus: what to sample.
        process: id of the process whose part is told.
    """

    def __init__(self, nvml: Nvml, gpus: tuple[Gpu, ...], process: int) -> None:
        self._nvml = nvml
        self._gpus = gpus
        self._process = process
        self._most: dict[str, DeviceTotals] = {}

    @property
    def totals(self) -> list[DeviceTotals]:
        """For each GPU the most of each number."""
        return list(self._most.values())

    def sample(self) -> None:
        """Reads the driver; about a tenth of a millisecond a GPU, so not in every step."""
        for gpu in self._gpus:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(gpu.handle)
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(gpu.handle)
            # In a container the driver knows processes by other ids; some drivers tell no sizes.
            own = next((one.usedGpuMemory for one in running if one.pid == self._process), None)
            before = self._most.get(gpu.device)
            self._most[gpu.device] = DeviceTotals(
                device=gpu.device,
                model=gpu.model,
                total_bytes=int(memory.total),
                used_bytes=max(int(memory.used), before.used_bytes if before else 0),
                process_bytes=_most(own, before.process_bytes if before else None),
            )


def find_gpus(names: list[str], nvml: Nvml, environment: Mapping[str, str] = os.environ) -> FoundGpus:
    """The handles of the GPUs that this process's TensorFlow uses.

    Args:
        names: TensorFlow's names of its GPUs, `"GPU:0"` and so on.
        nvml: the module `pynvml`.
        environment: where `CUDA_VISIBLE_DEVICES` says which of the machine's GPUs they are.
    """
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        models = [_text(nvml.nvmlDeviceGetName(handle)) for handle in handles]
        visible = _visible([_text(nvml.nvmlDeviceGetUUID(handle)) for handle in handles], environment)
    except Exception as error:
        return FoundGpus((), f"The driver's totals were not read: NVML failed ({type(error).__name__}: {error}).")
    if visible is None or len(visible) < len(names):
        wanted = environment.get("CUDA_VISIBLE_DEVICES", "")
        return FoundGpus((), f"The driver's totals were not read: CUDA_VISIBLE_DEVICES={wanted!r} is not understood.")
    by_speed = environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID"
    if by_speed and len({models[index] for index in visible}) > 1:
        # CUDA counts the fastest first, and NVML by place; only where all are the same is that one order.
        return FoundGpus((), "The driver's totals were not read: set CUDA_DEVICE_ORDER=PCI_BUS_ID to have them.")
    found = [Gpu(name, handles[index], models[index]) for name, index in zip(names, visible, strict=False)]
    return FoundGpus(tuple(found))


def driver_totals(names: list[str], load: Callable[[], Nvml] | None = None) -> tuple[DriverTotals | None, str | None]:
    """Totals of the GPUs of those names; None where there are none, with a note if something can be done about it.

    Args:
        names: TensorFlow's names of this process's GPUs.
        load: imports `pynvml`; for tests.
    """
    if not names:
        return None, None
    try:
        nvml = (load or _load)()
    except ImportError:
        return None, f"The GPU's totals (pool, CUDA context, other processes) were not read: {EXTRA}."
    gpus, note = find_gpus(names, nvml)
    return (DriverTotals(nvml, gpus, os.getpid()) if gpus else None), note


def _load() -> Nvml:
    import pynvml

    module: Nvml = pynvml
    return module


def _visible(uuids: list[str], environment: Mapping[str, str]) -> list[int] | None:
    """NVML's indexes of the GPUs that CUDA shows this process, in its order; None if that is not understood."""
    wanted = environment.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return list(range(len(uuids)))
    found = []
    for one in (part.strip() for part in wanted.split(",")):
        if one.isdecimal() and int(one) < len(uuids):
            found.append(int(one))
        elif one.startswith("GPU-") and sum(uuid.startswith(one) for uuid in uuids) == 1:
            found.append(next(index for index, uuid in enumerate(uuids) if uuid.startswith(one)))
        elif one.startswith("MIG-"):
            return None
        else:
            break  # CUDA takes what stands before the first that is none
    return found


def _text(name: str | bytes) -> str:
    # Older releases of nvidia-ml-py give bytes.
    return name.decode() if isinstance(name, bytes) else name


def _most(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return max(known, default=None)
