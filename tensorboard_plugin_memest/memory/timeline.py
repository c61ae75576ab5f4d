"""Live bytes over one step or one profile."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# The op of events at which a step gives back what it took as a whole.
END_OF_STEP = "(end of the step)"


@dataclass(frozen=True)
class Span:
    """A named stretch of a timeline, `start` to `end` in its ticks: "forward", "step 3"."""

    name: str
    start: int
    end: int

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "start": self.start, "end": self.end}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Span:
        return cls(data["name"], data["start"], data["end"])


@dataclass(frozen=True)
class Timeline:
    """Live bytes after every event, in order.

    Attributes:
        unit: what a tick is, `"op"` (position in the predicted order) or `"ns"` (nanoseconds since the start of a
            profile).
        ticks: when each event happened; never falls. Fractions only where events were laid on another's axis.
        live_bytes: bytes in use just after each event, same length as `ticks`.
        op_index: for each event, the index in `ops` of the op that allocated or freed.
        ops: op names.
        spans: named stretches, in order.
    """

    unit: str
    ticks: Sequence[float]
    live_bytes: Sequence[int]
    op_index: Sequence[int]
    ops: Sequence[str]
    spans: Sequence[Span] = ()

    def __post_init__(self) -> None:
        if not len(self.ticks) == len(self.live_bytes) == len(self.op_index):
            raise ValueError(
                f"ticks, live_bytes and op_index must be of one length, not {len(self.ticks)}, "
                f"{len(self.live_bytes)} and {len(self.op_index)}."
            )
        # So that a timeline read back equals the one written, whatever its maker put its spans into.
        object.__setattr__(self, "spans", tuple(self.spans))

    def __len__(self) -> int:
        return len(self.ticks)

    @property
    def peak_bytes(self) -> int:
        return 0 if self.peak_position is None else self.live_bytes[self.peak_position]

    @cached_property
    def peak_position(self) -> int | None:
        """Index of the first event at the peak; None when there is no event."""
        return int(self._levels.argmax()) if len(self) else None

    @cached_property
    def _levels(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.live_bytes, np.int64)

    def peak_between(self, start: float, end: float) -> int:
        """The most in use after any event from tick `start` to tick `end`; 0 where there is none."""
        first, last = bisect_left(self.ticks, start), bisect_right(self.ticks, end)
        return max(self.live_bytes[first:last], default=0)

    def op_at(self, position: int) -> str:
        """Name of the op behind the event at `position`."""
        return self.ops[self.op_index[position]]

    def decimated(self, points: int) -> Timeline:
        """At most `points` events that keep each stretch's lowest and highest moment, so no peak is lost.

        Raises:
            ValueError: `points` is less than 4.
        """
        return self.only(self.thinned(points))

    def thinned(self, points: int, first: int | None = None, last: int | None = None) -> Sequence[int]:
        """Positions of at most about `points` events that draw the same line as all of them from tick to tick.

        The stretch is cut into equal parts along its ticks, and of each the first, the last, the lowest and the highest
        event stay: drawn over a quarter as many pixels as there are points, the line is the same to the pixel (M4,
        Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014).

        Args:
            points: how many; two more where the stretch begins or ends between two events.
            first: the tick at which the stretch begins; the event before it, whose level it begins with, stays too.
                None: the first there is.
            last: the tick at which it ends; the event after it stays too. None: the last there is.

        Raises:
            ValueError: `points` is less than 4.
        """
        if points < 4:
            raise ValueError(f"A timeline can be thinned to no fewer than 4 points, not {points}.")
        begin = 0 if first is None else bisect_left(self.ticks, first)
        end = len(self) if last is None else max(begin, bisect_right(self.ticks, last))
        kept: set[int] = set()
        if end - begin <= points:
            kept.update(range(begin, end))
        else:
            start, whole = self.ticks[begin], self.ticks[end - 1] - self.ticks[begin] + 1
            parts = points // 4
            edges = [bisect_left(self.ticks, start + part * whole // parts, begin, end) for part in range(parts)]
            for left, right in pairwise([*edges, end]):
                if left < right:
                    stretch = self._levels[left:right]
                    kept.update((left, left + int(stretch.argmax()), left + int(stretch.argmin()), right - 1))
        kept.update(position for position in (begin - 1, end) if 0 <= position < len(self))
        return sorted(kept)

    def only(self, positions: Sequence[int]) -> Timeline:
        """The events at `positions`, which rise."""
        if len(positions) == len(self):
            return self
        used = sorted({self.op_index[position] for position in positions})
        renumbered = {old: new for new, old in enumerate(used)}
        return Timeline(
            unit=self.unit,
            ticks=[self.ticks[position] for position in positions],
            live_bytes=[self.live_bytes[position] for position in positions],
            op_index=[renumbered[self.op_index[position]] for position in positions],
            ops=[self.ops[old] for old in used],
            spans=self.spans,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "ticks": list(self.ticks),
            "live_bytes": list(self.live_bytes),
            "op_index": list(self.op_index),
            "ops": list(self.ops),
            "spans": [span.to_dict() for span in self.spans],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Timeline:
        return cls(
            unit=data["unit"],
            ticks=data["ticks"],
            live_bytes=data["live_bytes"],
            op_index=data["op_index"],
            ops=data["ops"],
            spans=[Span.from_dict(span) for span in data["spans"]],
        )
