"""What really happened: peaks per step, and a profile's memory timeline. All numbers are bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.memory.allocations import Alive, Allocations, alike
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.timeline import Span, Timeline


@dataclass(frozen=True)
class Window:
    """Consecutive steps told together.

    Attributes:
        first_step: number of the first step in it, 0 for the first of the run.
        last_step: number of the last.
        peak_bytes: the highest peak of any of them.
        current_bytes: the most that was in use just after any of them.
        start_bytes: the least that was in use just before any of them.
        rise_bytes: the most by which the peak of any of them rose above what was in use around it: just before it, or
            just after it less the most that any step between the first and this one gave back, whichever is more.
    """

    first_step: int
    last_step: int
    peak_bytes: int
    current_bytes: int
    start_bytes: int
    rise_bytes: int


@dataclass(frozen=True)
class MeasuredPeaks:
    """Measured peaks of one device over a run.

    Attributes:
        device: `"GPU:0"`, `"CPU:0"`.
        source: what was measured, in words: `"TensorFlow's BFC allocator"`.
        before_bytes: peak before the first step (building included), since the process or the statistics began;
            None when it is not known.
        limit_bytes: what the allocator may use; None when unknown.
        windows: all steps, in order; together they cover every step of the run.
        shared_by: how many devices of the process the allocator serves; logical CPUs share one.
        process: which of several processes of the run measured it, `"worker 1"`; None for the first, or the only one.
        epochs: number and first step of epochs, in order; not of every one where there were many, and none of a loop
            that has no epochs.
    """

    device: str
    source: str
    before_bytes: int | None
    limit_bytes: int | None
    windows: tuple[Window, ...]
    shared_by: int = 1
    process: str | None = None
    epochs: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> str:
        """The device as people tell it from the others of the run: `"worker 1, GPU:0"`."""
        return self.device if self.process is None else f"{self.process}, {self.device}"

    @property
    def peak_bytes(self) -> int | None:
        """The highest peak of any step; None before the first."""
        return max((window.peak_bytes for window in self.windows), default=None)

    @property
    def steps(self) -> int:
        """How many steps were measured."""
        return self.windows[-1].last_step + 1 if self.windows else 0

    @property
    def phases(self) -> dict[str, tuple[Window, ...]]:
        """The windows of `"first_step"`, where one of it alone was measured, and of `"step"`, all the others."""
        first = [window for window in self.windows if window.first_step == window.last_step == 0]
        found = {"first_step": tuple(first), "step": self.windows[len(first) :]}
        return {name: windows for name, windows in found.items() if windows}

    def to_dict(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "source": self.source,
            "before_bytes": self.before_bytes,
            "limit_bytes": self.limit_bytes,
            "windows": [
                [w.first_step, w.last_step, w.peak_bytes, w.current_bytes, w.start_bytes, w.rise_bytes]
                for w in self.windows
            ],
            "shared_by": self.shared_by,
            "epochs": [list(epoch) for epoch in self.epochs],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuredPeaks:
        return cls(
            device=data["device"],
            source=data["source"],
            before_bytes=data["before_bytes"],
            limit_bytes=data["limit_bytes"],
            windows=tuple(Window(*row) for row in data["windows"]),
            shared_by=data.get("shared_by", 1),
            epochs=tuple((number, step) for number, step in data.get("epochs", ())),
        )


TRAIN = "train"
EVALUATE = "evaluate"
PREDICT = "predict"
HOST = "host"
CALLS = "calls"

# Stands for a device where it is the memory of the host.
HOST_DEVICE = "HOST"


@dataclass(frozen=True)
class MeasuredBeside:
    """What was measured beside the training steps of a device.

    Attributes:
        what: `"evaluate"` or `"predict"` for their batches, counted as steps; `"host"` for the host's memory in the
            training steps; `"calls"` for what is in use when `fit`, `evaluate`, `predict` or a monitor begins, over all
            of the process: each of their calls counts as a step.
        peaks: the peaks. For the host these are of the process's resident set, as it was before the first step and
            after steps; quick ones share a reading, and then nothing is said of what came and went meanwhile.
    """

    what: str
    peaks: MeasuredPeaks

    def to_dict(self) -> dict[str, Any]:
        return {"what": self.what, "peaks": self.peaks.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuredBeside:
        return cls(data["what"], MeasuredPeaks.from_dict(data["peaks"]))


@dataclass(frozen=True)
class DeviceTotals:
    """What the driver has seen in use on a GPU, the most of each, in bytes.

    Attributes:
        device: `"GPU:0"`.
        model: the GPU's model, such as `"NVIDIA GeForce RTX 3080"`.
        total_bytes: what the device has.
        used_bytes: in use by all processes, the driver's own included.
        process_bytes: in use by the process that trained: its allocator's pool, the CUDA context, kernels and
            libraries; None where the driver does not tell.
    """

    device: str
    model: str
    total_bytes: int
    used_bytes: int
    process_bytes: int | None

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DeviceTotals:
        return cls(**data)


def device_kind_of(allocator: str) -> str | None:
    """`"GPU"` or `"CPU"`, whose memory an allocator of that id hands out; None for other memory."""
    if allocator.startswith("GPU_"):
        return "GPU"
    return "CPU" if "cpu" in allocator else None


@dataclass(frozen=True)
class MeasuredProfile:
    """The memory timeline of one allocator in one profile.

    Attributes:
        allocator: the allocator's id, such as `"GPU_0_bfc"` or `"cpu_bfc"`.
        host: name of the host that was profiled.
        started_at: when the profile started, as its directory is named.
        steps: the training steps in it, in nanoseconds since the start of the profile.
        before_bytes: bytes in use when the profile started.
        before: what those bytes are: variables matched by size, and one unattributed item for the rest; they add
            up to `before_bytes`.
        timeline: every allocation and deallocation, in nanoseconds since the start of the profile.
        live_at_peak: everything alive at the timeline's peak, largest first, `before` included.
        allocations: the buffers of the timeline, those of `before` included; None where the profile lacks events, and
            where that was not kept, as before memest did.
    """

    allocator: str
    host: str
    started_at: str
    steps: Sequence[Span]
    before_bytes: int
    before: tuple[Item, ...]
    timeline: Timeline
    live_at_peak: tuple[Item, ...]
    allocations: Allocations | None = None

    @property
    def device_kind(self) -> str | None:
        """`"GPU"` or `"CPU"`, whose memory it is; None for other memory, such as what the host keeps for a GPU."""
        return device_kind_of(self.allocator)

    @property
    def peak_bytes(self) -> int:
        """The highest number of bytes in use in the window."""
        return max(self.before_bytes, self.timeline.peak_bytes)

    def alive_at(self, position: int) -> list[Alive] | None:
        """Everything alive just after the event at `position` of the timeline, largest first; None if not known.

        The peak is known of every profile.
        """
        if position == self.timeline.peak_position and self.before_bytes <= self.timeline.peak_bytes:
            return alike(self.live_at_peak)
        return None if self.allocations is None else self.allocations.alive_at(position)

    def to_dict(self) -> dict[str, Any]:
        return {
            "allocator": self.allocator,
            "host": self.host,
            "started_at": self.started_at,
            "steps": [span.to_dict() for span in self.steps],
            "before_bytes": self.before_bytes,
            "before": [item.to_dict() for item in self.before],
            "timeline": self.timeline.to_dict(),
            "live_at_peak": [item.to_dict() for item in self.live_at_peak],
            "allocations": None if self.allocations is None else self.allocations.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuredProfile:
        return cls(
            allocator=data["allocator"],
            host=data["host"],
            started_at=data["started_at"],
            steps=tuple(Span.from_dict(span) for span in data["steps"]),
            before_bytes=data["before_bytes"],
            before=tuple(Item.from_dict(item) for item in data["before"]),
            timeline=Timeline.from_dict(data["timeline"]),
            live_at_peak=tuple(Item.from_dict(item) for item in data["live_at_peak"]),
            allocations=Allocations.from_dict(data["allocations"]) if data.get("allocations") else None,
        )
