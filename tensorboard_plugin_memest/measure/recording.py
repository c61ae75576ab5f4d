"""One run that is being measured: step after step into peaks, and those into the log before it is too late."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.measure.allocator import AllocatorStatistics, Found, Reading
from tensorboard_plugin_memest.measure.host import resident_bytes
from tensorboard_plugin_memest.measure.nvml import DriverTotals
from tensorboard_plugin_memest.measure.peaks import EpochRecorder, PeakRecorder
from tensorboard_plugin_memest.measure.resident import ResidentRecorder
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.measured import (
    CALLS,
    HOST,
    HOST_DEVICE,
    TRAIN,
    DeviceTotals,
    MeasuredBeside,
    MeasuredPeaks,
    MeasuredProfile,
)

# Each record holds the whole run so far. They are written when the number of steps has doubled, and otherwise at times
# that lie a tenth of the run's age apart: a day of training makes about a hundred records, and a killed run is known
# to its last tenth.
_SHORTEST_PAUSE = 1.0
_LONGEST_PAUSE = 10.0
_PAUSE_AT_EPOCHS = 2.0
_PAUSE_PER_AGE = 0.1

# So many steps are put away together. A step of training leaves nothing of ours in the processor's caches, and code
# that has to come from memory takes six times as long: what can wait is done for many steps in a row.
_MOST_WAITING = 64

# Seconds between two steps after which is looked whether it is time to write, and what the process holds of the host's
# memory: for the system to tell that takes nearly as long as all that every step does.
_BETWEEN_LOOKS = 0.1


@dataclass
class _Kind:
    """The steps of one kind: a recorder for each allocator, and how many steps were recorded and written."""

    recorders: list[PeakRecorder]
    steps: int = 0  # those that wait to be put away included
    written: int = 0

    @classmethod
    def of(cls, allocators: Sequence[AllocatorStatistics]) -> _Kind:
        return cls([PeakRecorder() for _ in allocators])


# What was read of one step, or of several that ran together: its kind, how many, the readings before it and after it in
# the order of the allocators.
_Read = tuple[_Kind, int, list[Reading], list[Reading]]


class Recording:
    """Measures the steps of one run and writes what it finds into the run's log directory.

    A step is `begin`, then `end`, or `discard` where it turns out that there was no step. Memory that is used between
    steps is not theirs. Batches of evaluation and prediction are steps of their own kind, counted apart.

    Args:
        logdir: the run's directory.
        found: the allocators to measure, and notes on those that cannot be.
        clock: seconds that only rise.
        host: the process's resident set in bytes; None where it is not known.
        totals: what the driver says of the GPUs; None without.

    Attributes:
        before_bytes: the peak of each device before the first step, in bytes, in the order of the allocators.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        found: Found,
        clock: Callable[[], float] = time.monotonic,
        host: Callable[[], int | None] = resident_bytes,
        totals: DriverTotals | None = None,
    ) -> None:
        self._logdir = logdir
        self._allocators: Sequence[AllocatorStatistics] = found.allocators
        self._kinds = {TRAIN: _Kind.of(found.allocators)}
        self.before_bytes = [allocator.read().peak for allocator in found.allocators]
        self._calls = found.calls
        self._calls_written = 0
        self._call_begins = False
        self._notes = list(found.notes)
        self._notes_written: list[str] = []
        self._clock = clock
        self._started = self._written_at = clock()
        self._recorded = 0  # steps of all kinds
        self._written = 0
        self._open = 0
        self._kind = TRAIN
        self._waiting: list[_Read] = []
        self._look_at = self._started
        self._host = host
        self._resident = ResidentRecorder(host)
        self._totals = totals
        self._totals_written: list[DeviceTotals] = []
        self._epochs = EpochRecorder()
        self._before: list[Reading] = []
        self._writer: RunWriter | None = None

    def open(self) -> None:
        """Opens the run's file, so that others who write into it meanwhile share it; a write opens it too."""
        self._open_writer()

    @property
    def steps(self) -> int:
        """How many training steps were recorded."""
        return self._kinds[TRAIN].steps

    def begin_call(self) -> None:
        """A call of `fit`, `evaluate` or `predict` begins with the next step."""
        self._call_begins = True

    def begin_epoch(self, number: int) -> None:
        """The epoch `number`, counted from 0, begins with the next training step."""
        self._epochs.begin(number, self.steps)

    def begin(self, steps: int = 1, kind: str = TRAIN) -> None:
        """The next step begins, or the next `steps` that run together; `kind` is `"evaluate"`, say, if not training."""
        self._open, self._kind = steps, kind
        self._before = []
        for allocator in self._allocators:
            allocator.reset()
            self._before.append(allocator.read())
        if not self._recorded:
            self._resident.begin()
        if self._call_begins:
            self._call_begins = False
            self._record_call()

    def _record_call(self) -> None:
        in_use = {
            allocator.device: reading.current for allocator, reading in zip(self._allocators, self._before, strict=True)
        }
        resident = self._host()
        self._calls.record(in_use if resident is None else {**in_use, HOST_DEVICE: resident})

    def end(self, steps: int | None = None) -> bool:
        """The step is over: records its peak. Does nothing where none has begun.

        Args:
            steps: how many it was, if that is not what was said when it began.

        Returns:
            Whether it may be time to write: `write_if_due` knows, but need not be asked after every step.
        """
        if not self._open:
            return False
        after = [allocator.read() for allocator in self._allocators]
        kind = self._kinds.get(self._kind)
        if kind is None:
            kind = self._kinds[self._kind] = _Kind.of(self._allocators)
        steps = steps or self._open
        self._open = 0
        kind.steps += steps
        self._recorded += steps
        self._waiting.append((kind, steps, self._before, after))
        if len(self._waiting) >= _MOST_WAITING:
            self._put_away()
        now = self._clock()
        if now < self._look_at:
            return False
        self._look_at = now + _BETWEEN_LOOKS
        self._resident.end(self.steps)
        return True

    def _put_away(self) -> None:
        """Adds the steps that wait to the recorders."""
        waiting, self._waiting = self._waiting, []
        for kind, steps, before, after in waiting:
            for recorder, (start, _), (current, peak) in zip(kind.recorders, before, after, strict=True):
                recorder.record(start, peak, current, steps)

    def end_with(self, error: BaseException) -> None:
        """The step that has begun ended with `error`, just now: records it up to there, and tells."""
        if not self._open:
            return
        training = self._kind == TRAIN
        where = f"Training ended inside step {self.steps}" if training else f"A batch of {self._kind} ended"
        self.note(f"{where} with {type(error).__name__}; the peak of that step is what was in use until then.")
        self.end()

    def in_use(self, device: str | None) -> tuple[int | None, int | None]:
        """The most that was in use since the open step began, and the limit, of `device`, in bytes; None if unknown."""
        for allocator in self._allocators:
            if allocator.device == device or (device is None and len(self._allocators) == 1):
                return allocator.read().peak, allocator.limit_bytes
        return None, None

    def discard(self) -> None:
        """What began was no step."""
        self._open = 0

    def note(self, sentence: str) -> None:
        """Tells, with the next record, what could not be measured and what to do about it."""
        if sentence not in self._notes:
            self._notes.append(sentence)

    def withdraw(self, sentence: str) -> None:
        """Takes a note back."""
        if sentence in self._notes:
            self._notes.remove(sentence)

    def write_if_due(self, at_epoch_end: bool = False) -> None:
        """Writes what there is if the last record is old enough."""
        if self._recorded == self._written:
            return
        now = self._clock()
        pause = now - self._written_at
        usual = max(_PAUSE_AT_EPOCHS if at_epoch_end else _LONGEST_PAUSE, _PAUSE_PER_AGE * (now - self._started))
        doubled = self._recorded >= 2 * self._written and pause >= _SHORTEST_PAUSE
        if self._written == 0 or doubled or pause >= usual:
            self.write()

    def write(self) -> None:
        """Writes the whole run so far, and the notes that are new."""
        writer = self._open_writer()
        if self._recorded > self._written:
            self._put_away()
            for name, kind in self._kinds.items():
                if kind.steps == kind.written:
                    continue
                for peaks in self._peaks_of(kind):
                    if name == TRAIN:
                        writer.write_peaks(replace(peaks, epochs=self._epochs.before(kind.steps)))
                    else:
                        writer.write_beside(MeasuredBeside(name, peaks))
                if name == TRAIN and (resident := self._resident.peaks(kind.steps)) is not None:
                    writer.write_beside(MeasuredBeside(HOST, resident))
                kind.written = kind.steps
            self._written = self._recorded
        if self._calls_written != self._calls.count:
            self._calls_written = self._calls.count
            for peaks in self._calls.peaks:
                writer.write_beside(MeasuredBeside(CALLS, peaks))
        if self._totals is not None:
            self._totals.sample()
            for one in self._totals.totals:
                if one not in self._totals_written:
                    writer.write_totals(one)
            self._totals_written = self._totals.totals
        if self._notes != self._notes_written:
            writer.write_notes(self._notes)
            self._notes_written = list(self._notes)
        self._written_at = self._clock()

    def write_crash(self, explanation: Explanation) -> None:
        """Writes the whole run so far and why it ended."""
        self.write()
        self._open_writer().write_crash(explanation)

    def write_profile(self, profile: MeasuredProfile) -> None:
        """Writes one allocator's timeline of a profile."""
        self._open_writer().write_profile(profile)

    def close(self) -> None:
        """Writes what is new and closes the file; a later write opens another."""
        self.write()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _peaks_of(self, kind: _Kind) -> list[MeasuredPeaks]:
        return [
            MeasuredPeaks(
                allocator.device,
                allocator.source,
                before,
                allocator.limit_bytes,
                recorder.windows,
                getattr(allocator, "shared_by", 1),
            )
            for allocator, before, recorder in zip(self._allocators, self.before_bytes, kind.recorders, strict=True)
        ]

    def _open_writer(self) -> RunWriter:
        if self._writer is None:
            self._writer = RunWriter(self._logdir)
        return self._writer
