"""What memest wrote into a run's directory, and an allocator that says what it is told to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

from tensorboard_plugin_memest.log.metadata import parse_content
from tensorboard_plugin_memest.log.record import Notes, Record, decode
from tensorboard_plugin_memest.measure.allocator import Reading
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks, MeasuredProfile


@dataclass
class Logged:
    """The records of a run, in the order in which they were written."""

    records: list[Record]

    @property
    def estimates(self) -> list[Estimate]:
        return [record for record in self.records if isinstance(record, Estimate)]

    @property
    def all_peaks(self) -> list[MeasuredPeaks]:
        return [record for record in self.records if isinstance(record, MeasuredPeaks)]

    @property
    def peaks(self) -> dict[str, MeasuredPeaks]:
        """The last record of each device: what TensorBoard shows."""
        return {record.device: record for record in self.all_peaks}

    @property
    def profiles(self) -> list[MeasuredProfile]:
        return [record for record in self.records if isinstance(record, MeasuredProfile)]

    @property
    def crashes(self) -> list[Explanation]:
        return [record for record in self.records if isinstance(record, Explanation)]

    @property
    def notes(self) -> tuple[str, ...]:
        """The last notes: what TensorBoard shows."""
        return ([record.sentences for record in self.records if isinstance(record, Notes)] or [()])[-1]


def read_log(run: Path) -> Logged:
    """Everything in the run's event files, of all its processes."""
    records = []
    for path in sorted((run / "memest").rglob("*tfevents*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                kind = parse_content(value.metadata.plugin_data.content).kind
                records.append(decode(kind, tensor_util.make_ndarray(value.tensor).item()))
    return Logged(records)


@dataclass
class Fake:
    """An allocator whose readings are given; the last is repeated."""

    readings: Iterable[tuple[int, int]]
    device: str = "GPU:0"
    source: str = "TensorFlow's BFC allocator"
    limit_bytes: int | None = None
    calls: list[str] = field(default_factory=list)
    _left: Iterator[tuple[int, int]] | None = None
    _last: tuple[int, int] = (0, 0)

    def read(self) -> Reading:
        self.calls.append("read")
        if self._left is None:
            self._left = iter(self.readings)
        self._last = next(self._left, self._last)
        return Reading(*self._last)

    def reset(self) -> None:
        self.calls.append("reset")
