"""What is in use when `fit`, `evaluate` or `predict` is called: what one call leaves behind, the next begins with."""

from __future__ import annotations

from tensorboard_plugin_memest.measure.peaks import PeakRecorder
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks

_SOURCE = "what was in use before the first step of each call of fit, evaluate or predict, and of each monitor"


class CallRecorder:
    """The calls of a process, whichever models they are of and wherever else they are recorded."""

    def __init__(self) -> None:
        self._of_devices: dict[str, PeakRecorder] = {}
        self.count = 0

    def record(self, in_use: dict[str, int]) -> None:
        """A call begins.

        Args:
            in_use: bytes in use by device.
        """
        self.count += 1
        for device, level in in_use.items():
            self._of_devices.setdefault(device, PeakRecorder()).record(level, level, level)

    @property
    def peaks(self) -> list[MeasuredPeaks]:
        """All calls so far as steps of one run, for each device; none where there was one call only."""
        if self.count < 2:
            return []
        return [
            MeasuredPeaks(device, _SOURCE, None, None, recorder.windows)
            for device, recorder in self._of_devices.items()
        ]
