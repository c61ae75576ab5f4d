"""A training that was rehearsed: whether it got through, what it needed, and why it died if it did."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass

from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.timeline import Timeline


@dataclass(frozen=True)
class MeasuredPhase:
    """What one phase needed, as the allocator counted it.

    Attributes:
        name: `"build"`, `"first_step"` or `"step"`, the later ones together.
        peak_bytes: the most that was in use during it; where it died, until then.
        current_bytes: what was in use after it; where it died, after what it had asked for was given back.
        steps: how many steps it was; 0 for building.
        completed: whether it got through.
    """

    name: str
    peak_bytes: int
    current_bytes: int
    steps: int
    completed: bool


@dataclass(frozen=True)
class Rehearsal:
    """A real training of a few steps on the CPU, under the allocator that serves GPUs. All numbers are bytes.

    Attributes:
        completed: whether all steps got through.
        phases: phase name to what was measured, in the order in which they ran; those that were never reached are
            missing.
        timeline: every allocation and release of building and of the first steps, in nanoseconds, with a span for each;
            None where the process could not tell it any more.
        explanation: why it ran out of memory; None if it did not.
        estimate: what had been predicted, for the same settings; None if it could not be estimated, which `notes` tell.
        limit_bytes: what the allocator was allowed; None for TensorFlow's default, 64 GiB.
        notes: what has to be known about how it was played, one sentence or two each.
    """

    completed: bool
    phases: Mapping[str, MeasuredPhase]
    timeline: Timeline | None
    explanation: Explanation | None
    estimate: Estimate | None
    limit_bytes: int | None
    notes: tuple[str, ...] = ()

    @property
    def peak_bytes(self) -> int | None:
        """The highest peak of any phase, building included; None if none was reached."""
        return max((phase.peak_bytes for phase in self.phases.values()), default=None)

    def __bool__(self) -> bool:
        return self.completed

    def __str__(self) -> str:
        from tensorboard_plugin_memest.memory.rehearsal_text import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
