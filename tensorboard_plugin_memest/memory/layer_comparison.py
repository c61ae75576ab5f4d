"""A profile's peak against the predicted one, layer by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, Phase
from tensorboard_plugin_memest.memory.measured import MeasuredProfile
from tensorboard_plugin_memest.memory.timeline import Span


@dataclass(frozen=True)
class LayerDifference:
    """What one layer, or another owner such as `"(input)"`, has alive at the two peaks, in bytes."""

    layer: str
    predicted_bytes: int
    measured_bytes: int

    @property
    def difference_bytes(self) -> int:
        """Measured less predicted."""
        return self.measured_bytes - self.predicted_bytes


@dataclass(frozen=True)
class ProfileComparison:
    """One profile held against an estimate.

    Attributes:
        profile: what was measured.
        phase: the predicted phase that it shows.
    """

    profile: MeasuredProfile
    phase: Phase

    @property
    def measured_bytes(self) -> Mapping[str, int]:
        """Bytes alive at the measured peak for each layer and other owner; they add up to it."""
        measured: Counter[str] = Counter()
        for item in self.profile.live_at_peak:
            measured[item.layer] += item.bytes
        return measured

    @property
    def layers(self) -> list[LayerDifference]:
        """Every layer and other owner of either side, the largest difference first."""
        predicted: Counter[str] = Counter()
        for item in self.phase.live_at_peak:
            predicted[item.layer] += item.bytes
        measured = self.measured_bytes
        owners = [*predicted, *(owner for owner in measured if owner not in predicted)]
        found = [LayerDifference(owner, predicted[owner], measured.get(owner, 0)) for owner in owners]
        return sorted(found, key=lambda one: -abs(one.difference_bytes))


def compare_profile(estimate: Estimate | None, profiles: Sequence[MeasuredProfile]) -> ProfileComparison | None:
    """Holds `estimate` against the last of `profiles` of its kind of device; None where one of the two is missing.

    Of several allocators of that kind in one profile it is the one whose peak is highest.
    """
    if estimate is None:
        return None
    of_kind = [profile for profile in profiles if profile.device_kind == estimate.subject.device]
    if not of_kind:
        return None
    profile = max(of_kind, key=lambda one: (one.started_at, one.peak_bytes))
    phase = shown_phase(estimate, profile)
    return None if phase is None else ProfileComparison(profile, phase)


def shown_phase(estimate: Estimate, profile: MeasuredProfile) -> Phase | None:
    """The phase of training that the highest step of a profile shows; None for an estimate without one.

    The first step is the only one that begins without the optimizer's slots.
    """
    phases = estimate.phases
    first, step = phases.get("first_step"), phases.get("step")
    if first is None or step is None:
        return step or first
    slots = {item.name for item in step.live_at_peak if item.category is Category.OPTIMIZER_SLOTS and item.variable}
    there = {item.name for item in profile.before}
    has_weights = any(item.category is Category.WEIGHTS for item in profile.before)
    began_first = bool(slots) and has_weights and not slots & there
    return first if began_first and profile.steps and highest_step(profile) == profile.steps[0] else step


def highest_step(profile: MeasuredProfile) -> Span:
    """The step of a profile with the highest peak; the whole profile where no step is known."""
    timeline = profile.timeline
    if not profile.steps or not len(timeline):
        end = timeline.ticks[-1] if len(timeline) else 0
        return Span("the whole profile", 0, int(end))
    return max(profile.steps, key=lambda step: timeline.peak_between(step.start, step.end))
