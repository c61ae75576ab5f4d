"""Peaks of any number of steps in a bounded number of windows, none of them lost."""

from __future__ import annotations

from dataclasses import dataclass

from tensorboard_plugin_memest.memory.measured import Window

MAX_WINDOWS = 512


@dataclass
class _Growing:
    window: Window
    records: int


class PeakRecorder:
    """Collects peak and current bytes step after step, on one device.

    The first record stays a window of its own: the first step traces the functions and creates the optimizer's slots,
    so it is unlike all others. When the windows are full, neighbours are merged two by two and every later one takes
    twice as many records; a window always holds the maxima of its steps. So the cost of a record does not grow with
    the number of steps.

    Args:
        max_windows: how many windows there may be.

    Raises:
        ValueError: `max_windows` is less than 3.
    """

    def __init__(self, max_windows: int = MAX_WINDOWS) -> None:
        if max_windows < 3:
            raise ValueError(f"max_windows must be at least 3 (the first step and two to merge), not {max_windows}.")
        self._max_windows = max_windows
        self._windows: list[_Growing] = []
        self._width = 1  # in records; a record covers several steps where Keras runs several per execution
        self._steps = 0

    @property
    def steps(self) -> int:
        """How many steps were recorded."""
        return self._steps

    @property
    def windows(self) -> tuple[Window, ...]:
        """All steps, in order and without gaps."""
        return tuple(growing.window for growing in self._windows)

    def record(self, peak_bytes: int, current_bytes: int, steps: int = 1) -> None:
        """Adds the next `steps` steps, measured together.

        Args:
            peak_bytes: the highest number of bytes in use during any of them.
            current_bytes: bytes in use just after the last.
            steps: how many they are.

        Raises:
            ValueError: `steps` is less than 1.
        """
        if steps < 1:
            raise ValueError(f"A record covers at least one step, not {steps}.")
        added = _Growing(Window(self._steps, self._steps + steps - 1, peak_bytes, current_bytes), 1)
        self._steps += steps
        if not self._last_is_open and len(self._windows) == self._max_windows:
            self._merge_neighbours()
        if self._last_is_open:
            self._windows[-1] = _merged(self._windows[-1], added)
        else:
            self._windows.append(added)

    @property
    def _last_is_open(self) -> bool:
        return len(self._windows) > 1 and self._windows[-1].records < self._width

    def _merge_neighbours(self) -> None:
        first, *rest = self._windows
        pairs = [_merged(*rest[i : i + 2]) if i + 1 < len(rest) else rest[i] for i in range(0, len(rest), 2)]
        self._windows = [first, *pairs]
        self._width *= 2


def _merged(left: _Growing, right: _Growing) -> _Growing:
    window = Window(
        left.window.first_step,
        right.window.last_step,
        max(left.window.peak_bytes, right.window.peak_bytes),
        max(left.window.current_bytes, right.window.current_bytes),
    )
    return _Growing(window, left.records + right.records)
