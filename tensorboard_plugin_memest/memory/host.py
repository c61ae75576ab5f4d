"""The prediction for one data pipeline: what each stage keeps in the host's memory, and what would change that."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.memory.format import AsJson
from tensorboard_plugin_memest.memory.host_text import advice_as_text, as_text


@dataclass(frozen=True)
class Stage:
    """One stage of the pipeline.

    Attributes:
        name: what it is, as it is written in a script: `"shuffle"`, `"cache"`, `"from_tensor_slices"`.
        bytes: what it keeps in memory and no stage before it counts.
        elements: how many elements it keeps; None where it keeps none or their number is not known.
        element_bytes: what one element that leaves the stage takes, its overhead included.
        reason: why, in words.
    """

    name: str
    bytes: int
    elements: int | None
    element_bytes: int
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Stage:
        return cls(**data)


@dataclass(frozen=True)
class HostLever:
    """A change of the pipeline, and what the changed pipeline was estimated to need.

    Attributes:
        name: the change in a few words.
        peak_bytes: the changed pipeline's `HostEstimate.peak_bytes`.
        saving_bytes: how much less that is; 0 or negative where the change does not help.
        cost: what one pays for it, in words.
        code: the line to write; empty where a line is only left out.
        reason: why it does not help, where it does not; else None.
    """

    name: str
    peak_bytes: int
    saving_bytes: int
    cost: str
    code: str
    reason: str | None = None

    @property
    def title(self) -> str:
        """The name, which says what to do; as the changes of a model have it."""
        return self.name

    @property
    def helps(self) -> bool:
        """Whether it saves at least a hundredth."""
        return self.saving_bytes > 0 and self.saving_bytes * 100 >= self.saving_bytes + self.peak_bytes

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HostLever:
        return cls(**data)


@dataclass(frozen=True)
class HostAdvice:
    """Changes of a pipeline; iterate it for those that help.

    Attributes:
        levers: those that help, the most helpful first.
        useless: those that do not, each with the reason.
    """

    levers: tuple[HostLever, ...]
    useless: tuple[HostLever, ...]

    def __iter__(self) -> Iterator[HostLever]:
        return iter(self.levers)

    def __len__(self) -> int:
        return len(self.levers)

    def __getitem__(self, number: int) -> HostLever:
        return self.levers[number]

    def __str__(self) -> str:
        return advice_as_text(self)


@dataclass(frozen=True)
class HostEstimate(AsJson):
    """The predicted host memory of one data pipeline. All numbers are bytes.

    What is predicted is by how much the resident set of the process rises while batches flow. What exists without the
    pipeline, such as NumPy arrays of the caller's, is not in it.

    Attributes:
        stages: every stage, in the order in which data passes them; their bytes add up to `peak_bytes`.
        slack_bytes: how much more the allocators may hold beside that, at most: their own books, and holes that are too
            small for what comes.
        startup_bytes: the most before the first batch: `peak_bytes` or, where arrays are converted, more for a moment.
        levers: changes that were tried, the most helpful first.
        assumptions: everything that was assumed, one sentence each.
        versions: package name to version.
    """

    called = "estimate of a data pipeline"

    stages: tuple[Stage, ...]
    startup_bytes: int
    slack_bytes: int = 0
    levers: tuple[HostLever, ...] = ()
    assumptions: tuple[str, ...] = ()
    versions: Mapping[str, str] | None = None

    @property
    def peak_bytes(self) -> int:
        """The most that the pipeline holds while batches flow."""
        return sum(stage.bytes for stage in self.stages)

    def advice(self) -> HostAdvice:
        """Changes of the pipeline, each with the peak of the changed pipeline; the most helpful first."""
        return HostAdvice(
            tuple(lever for lever in self.levers if lever.helps),
            tuple(lever for lever in self.levers if not lever.helps),
        )

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        return {
            "stages": [stage.to_dict() for stage in self.stages],
            "startup_bytes": self.startup_bytes,
            "slack_bytes": self.slack_bytes,
            "levers": [lever.to_dict() for lever in self.levers],
            "assumptions": list(self.assumptions),
            "versions": None if self.versions is None else dict(self.versions),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HostEstimate:
        return cls(
            stages=tuple(Stage.from_dict(stage) for stage in data["stages"]),
            startup_bytes=data["startup_bytes"],
            slack_bytes=data["slack_bytes"],
            levers=tuple(HostLever.from_dict(lever) for lever in data["levers"]),
            assumptions=tuple(data["assumptions"]),
            versions=data["versions"],
        )
