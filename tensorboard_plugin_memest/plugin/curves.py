"""Curves as answers: what of one is wanted, thinned so that no peak is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tensorboard_plugin_memest.log.metadata import profile_id
from tensorboard_plugin_memest.memory.alignment import Aligned
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.measured import MeasuredProfile
from tensorboard_plugin_memest.memory.timeline import Span, Timeline
from tensorboard_plugin_memest.memory.whose import Whose

Plain = dict[str, Any]

# Of ops of which measurement and prediction do not say the same.
MOST_DIFFERENCES = 100


class Wanted(NamedTuple):
    """What of a curve is wanted.

    Attributes:
        points: about how many events it is thinned to, at least 4.
        first: the tick where it begins; None: where the curve does.
        last: the tick where it ends; None: where the curve does.
    """

    points: int = 2000
    first: int | None = None
    last: int | None = None


def timeline_view(timeline: Timeline, wanted: Wanted, owners: Mapping[str, Whose]) -> Plain:
    """A curve, or what of it is wanted, with where its peak is.

    Args:
        owners: whose the tensors of an op are, by its name.
    """
    positions = timeline.thinned(*wanted)
    shown = timeline.only(positions)
    peak = timeline.peak_position
    return {
        "events": len(timeline),
        "extent": [timeline.ticks[0], timeline.ticks[-1]] if len(timeline) else None,
        "peak": None
        if peak is None
        else {
            "position": peak,
            "tick": timeline.ticks[peak],
            "live_bytes": timeline.live_bytes[peak],
            "op": timeline.op_at(peak),
        },
        "timeline": {
            **shown.to_dict(),
            "positions": list(positions),
            "layers": [owners[op].layer if op in owners else None for op in shown.ops],
        },
    }


def aligned_view(profile: MeasuredProfile, phase: Phase, step: Span, aligned: Aligned, wanted: Wanted) -> Plain:
    """A measured step on the axis of the predicted one."""
    positions = aligned.timeline.thinned(*wanted)
    return {
        "id": profile_id(profile),
        "phase": phase.name,
        "step": step.to_dict(),
        "measured_peak_bytes": aligned.timeline.peak_bytes,
        "predicted_peak_bytes": phase.timeline.peak_bytes,
        "beside_bytes": aligned.beside_bytes,
        "events": len(aligned.timeline),
        "timeline": {
            **aligned.timeline.only(positions).to_dict(),
            "positions": [aligned.first + position for position in positions],
        },
        "ops": {
            "predicted": aligned.predicted_ops,
            "measured": aligned.measured_ops,
            "matched": aligned.matched_ops,
            "in_order": aligned.in_order,
        },
        "differences": [one.to_dict() for one in aligned.differences[:MOST_DIFFERENCES]],
    }
