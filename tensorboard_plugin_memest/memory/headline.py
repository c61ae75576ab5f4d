"""The little of an estimate that a list of runs shows, and that measured peaks are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.memory.estimate import Estimate, Subject


@dataclass(frozen=True)
class Headline:
    """An estimate in a few hundred bytes. Whole estimates of 200 runs would take a reader half a minute.

    Attributes:
        subject: what was estimated and for what.
        peak_bytes: its peak.
        limit_bytes: the limit recorded with it; None without one.
        after_first_step_bytes: what it says is in use when the first step has ended.
        before_step_bytes: what it says is in use when a later step begins.
    """

    subject: Subject
    peak_bytes: int
    limit_bytes: int | None
    after_first_step_bytes: int
    before_step_bytes: int

    @classmethod
    def of(cls, estimate: Estimate) -> Headline:
        """That of `estimate`."""
        return cls(
            subject=estimate.subject,
            peak_bytes=estimate.peak_bytes,
            limit_bytes=estimate.limit_bytes,
            after_first_step_bytes=_in_use(estimate, "first_step", -1),
            before_step_bytes=_in_use(estimate, "step", 0),
        )

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "subject": self.subject.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Headline:
        return cls(
            subject=Subject.from_dict(data["subject"]),
            peak_bytes=data["peak_bytes"],
            limit_bytes=data["limit_bytes"],
            after_first_step_bytes=data["after_first_step_bytes"],
            before_step_bytes=data["before_step_bytes"],
        )


def _in_use(estimate: Estimate, phase: str, position: int) -> int:
    """What the estimate says is in use at one end of a phase."""
    if phase not in estimate.phases or not estimate.phases[phase].timeline.live_bytes:
        return estimate.resident_bytes
    return estimate.phases[phase].timeline.live_bytes[position]
