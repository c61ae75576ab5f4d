"""The process's resident set in the training steps: read now and then, told for all of them."""

from __future__ import annotations

from collections.abc import Callable

from tensorboard_plugin_memest.measure.peaks import PeakRecorder
from tensorboard_plugin_memest.memory.measured import HOST_DEVICE, MeasuredPeaks

_SOURCE = "the resident set of the process, before the first step and after steps, ten times a second at most"


class ResidentRecorder:
    """The resident set after some of the steps, those in between included; who calls it says after which.

    So what a window says is the most that was read just before its steps or after any of them, and nothing is said of
    what came and went meanwhile.

    Args:
        read: the resident set in bytes; None where it is not known.
    """

    def __init__(self, read: Callable[[], int | None]) -> None:
        self._read = read
        self._before = self._last = read()
        self._recorder = PeakRecorder()

    def begin(self) -> None:
        """The first step begins."""
        self._last = self._read()

    def end(self, steps: int) -> None:
        """A step has ended, and so many in all: reads for those that were not read yet, if there are any."""
        unread = steps - self._recorder.steps
        if not unread:
            return
        last, self._last = self._last, self._read()
        if last is not None and self._last is not None:
            self._recorder.record(last, max(last, self._last), self._last, unread)

    def peaks(self, steps: int) -> MeasuredPeaks | None:
        """All steps so far, of which there are so many; None where nothing is known."""
        self.end(steps)
        windows = self._recorder.windows
        return MeasuredPeaks(HOST_DEVICE, _SOURCE, self._before, None, windows) if windows else None
