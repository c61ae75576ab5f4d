"""Whether a run fits into a device's memory, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorboard_plugin_memest.memory.units import format_bytes

FITS = "fits"
MAY_NOT_FIT = "may not fit"
DOES_NOT_FIT = "does not fit"

# From this share of what is to spare on, it is told that there may be less.
_WORTH_TELLING = 0.1

_WORDS = {
    "build": "building the model",
    "first_step": "the first step",
    "step": "a step",
    "evaluate": "evaluating",
    "predict": "predicting",
    "checkpoint": "saving",
}


@dataclass(frozen=True)
class PhaseMargin:
    """One phase against the limit.

    Attributes:
        peak_bytes: the predicted peak.
        margin_bytes: limit minus peak; negative when the phase does not fit.
        peak_range: lowest and highest peak over the orders that can happen.
        outcome: `FITS`; `MAY_NOT_FIT` when the order of execution decides; or `DOES_NOT_FIT`.
    """

    peak_bytes: int
    margin_bytes: int
    peak_range: tuple[int, int]
    outcome: str


@dataclass(frozen=True)
class Verdict:
    """Every phase against one limit. True only if all phases fit in every order that can happen.

    Attributes:
        limit_bytes: the limit.
        phases: phase name to PhaseMargin.
        limit_name: the device that the limit is of, where one was named.
        risks: what may go wrong within the limit, apart from the peaks themselves: gaps in the pool, its growth, and
            what else takes memory of the device.
    """

    limit_bytes: int
    phases: Mapping[str, PhaseMargin]
    limit_name: str | None = None
    risks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.outcome == FITS

    @property
    def tightest(self) -> tuple[str, PhaseMargin]:
        """The phase that needs most, and its margin."""
        return max(self.phases.items(), key=lambda entry: entry[1].peak_bytes)

    @property
    def outcome(self) -> str:
        """The worst outcome of any phase."""
        found = {phase.outcome for phase in self.phases.values()}
        return next(outcome for outcome in (DOES_NOT_FIT, MAY_NOT_FIT, FITS) if outcome in found)

    @property
    def margin_bytes(self) -> int:
        """Limit minus the highest peak of any phase; negative when short."""
        return self.tightest[1].margin_bytes

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        name, phase = self.tightest
        # Training is what everybody thinks of.
        where = "" if name in ("first_step", "step") else f" while {_WORDS[name]}"
        needs = f"Needs {format_bytes(phase.peak_bytes)}{where}; the limit is {format_bytes(self.limit_bytes)}"
        if self.limit_name is not None:
            needs += f" ({self.limit_name})"
        if self.outcome == DOES_NOT_FIT:
            return f"{needs}: {format_bytes(-self.margin_bytes)} short."
        highest = max(phase.peak_range[1] for phase in self.phases.values())
        if self.outcome == MAY_NOT_FIT:
            return f"{needs}: whether it fits depends on the order in which the ops run, up to {format_bytes(highest)}."
        least = self.limit_bytes - highest
        spare = f"{format_bytes(self.margin_bytes)} to spare"
        if self.margin_bytes - least > _WORTH_TELLING * self.margin_bytes:
            # Where the ops run in another order.
            spare = f"{format_bytes(least)} to {spare}"
        return f"{needs}: it fits with {spare}."

    def __str__(self) -> str:
        return self.sentence


def judge(phases: Mapping[str, tuple[int, tuple[int, int]]], limit_bytes: int) -> Verdict:
    """Holds every phase's (peak, (lowest, highest)) in bytes against `limit_bytes`."""
    margins = {}
    for name, (peak, (lowest, highest)) in phases.items():
        if peak > limit_bytes:
            outcome = DOES_NOT_FIT
        elif highest > limit_bytes:
            outcome = MAY_NOT_FIT
        else:
            outcome = FITS
        margins[name] = PhaseMargin(peak, limit_bytes - peak, (lowest, highest), outcome)
    return Verdict(limit_bytes, margins)
