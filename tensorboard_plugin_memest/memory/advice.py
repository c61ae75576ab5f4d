"""What to change so that a training needs less memory, each change re-estimated on the model itself. Plain data."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.memory.advice_text import as_text
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.format import AsJson


@dataclass(frozen=True)
class Lever:
    """One change, and what it was estimated to do to this model.

    Attributes:
        name: short and unique within an Advice, such as `"sgd"`.
        title: what to do, in words.
        peak_bytes: the training peak after it.
        needs_bytes: the most that any phase then needs, building included, in any order that can happen.
        saving_bytes: how much lower the training peak is; negative if it is higher.
        saving_by_category: the same by category, unchanged ones left out.
        fits: whether every phase then fits.
        cost: what it costs in speed, accuracy or effort.
        code: the code to change.
        reason: why it does not help, where it does not; else None.
        host_saving_bytes: how much less of the host's memory is taken, where the change is about that.
    """

    name: str
    title: str
    peak_bytes: int
    needs_bytes: int
    saving_bytes: int
    saving_by_category: Mapping[Category, int]
    fits: bool
    cost: str
    code: str
    reason: str | None = None
    host_saving_bytes: int = 0

    @property
    def is_about_the_host(self) -> bool:
        """Whether it saves the host's memory and none of the device's."""
        return self.host_saving_bytes > 0 and self.saving_bytes == 0

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "saving_by_category": {str(category): saved for category, saved in self.saving_by_category.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Lever:
        saved = {Category(category): number for category, number in data["saving_by_category"].items()}
        return cls(**{**data, "saving_by_category": saved})


@dataclass(frozen=True)
class Combination:
    """Several changes at once, the fewest that were found to make the training fit.

    Attributes:
        names: names of the levers.
        peak_bytes: the training peak after all of them.
        needs_bytes: the most that any phase then needs.
    """

    names: tuple[str, ...]
    peak_bytes: int
    needs_bytes: int

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "names": list(self.names)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Combination:
        return cls(**{**data, "names": tuple(data["names"])})


@dataclass(frozen=True)
class Advice(AsJson):
    """Changes to a training, judged by one limit. All numbers are bytes.

    Attributes:
        limit_bytes: the limit.
        peak_bytes: the training peak as it is.
        needs_bytes: the most that any phase needs as it is.
        fits: whether it fits as it is.
        levers: changes that help: those that make it fit first, then by the peak after them.
        useless: changes that do not help, each with the reason.
        combination: the fewest changes that were found to make it fit; None if it fits as it is, or none were found.
        batch_curve: (batch size, training peak) of those that were looked at, ascending.
        max_batch_size: the largest batch that fits, nothing else changed; 0 if none does, None if the model takes
            one size only.
        notes: what could not be tried, and why.
    """

    called = "advice"

    limit_bytes: int
    peak_bytes: int
    needs_bytes: int
    fits: bool
    levers: tuple[Lever, ...]
    useless: tuple[Lever, ...]
    combination: Combination | None
    batch_curve: tuple[tuple[int, int], ...] = ()
    max_batch_size: int | None = None
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Any:
        return iter(self.levers)

    def __len__(self) -> int:
        return len(self.levers)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "levers": [lever.to_dict() for lever in self.levers],
            "useless": [lever.to_dict() for lever in self.useless],
            "combination": None if self.combination is None else self.combination.to_dict(),
            "batch_curve": [list(point) for point in self.batch_curve],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Advice:
        combination = data["combination"]
        return cls(
            limit_bytes=data["limit_bytes"],
            peak_bytes=data["peak_bytes"],
            needs_bytes=data["needs_bytes"],
            fits=data["fits"],
            levers=tuple(Lever.from_dict(lever) for lever in data["levers"]),
            useless=tuple(Lever.from_dict(lever) for lever in data["useless"]),
            combination=None if combination is None else Combination.from_dict(combination),
            batch_curve=tuple((size, peak) for size, peak in data["batch_curve"]),
            max_batch_size=data["max_batch_size"],
            notes=tuple(data["notes"]),
        )

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
