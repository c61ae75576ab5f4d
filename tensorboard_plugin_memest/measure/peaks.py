"""Peaks of any number of steps in a bounded number of windows, none of them lost."""

from __future__ import annotations

from dataclasses import dataclass

from tensorboard_plugin_memest.memory.measured import Window

MAX_WINDOWS = 512
MAX_EPOCHS = 256


@dataclass
class _Growing:
    window: Window
    records: int


class PeakRecorder:
    """Collects what was in use before, during and after each step, on one device.

    The first record stays a window of its own: the first step traces the functions and creates the optimizer's slots,
    so it is unlike all others. When the windows are full, neighbours are merged two by two and every later one takes
    twice as many records; a window always holds the extremes of its steps. So the cost of a record does not grow with
    the number of steps.

    How far a step rises is counted from what is in use around it. One that ends with more than it began with has kept
    something that is there between steps from then on: the first one the optimizer's slots, others a shuffle buffer
    that is filled anew. So it is counted from its end. But an allocator that hands out whole chunks lets the same
    variables take more after one step and less after the next. What later steps gave back before is taken for such a
    swing, and not for something kept.

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
        self._given_back = 0

    @property
    def steps(self) -> int:
        """How many steps were recorded."""
        return self._steps

    @property
    def windows(self) -> tuple[Window, ...]:
        """All steps, in order and without gaps."""
        return tuple(growing.window for growing in self._windows)

    def record(self, start_bytes: int, peak_bytes: int, current_bytes: int, steps: int = 1) -> None:
        """Adds the next `steps` steps, measured together.

        Args:
            start_bytes: bytes in use just before the first of them.
            peak_bytes: the highest number of bytes in use during any of them.
            current_bytes: bytes in use just after the last.
            steps: how many they are.

        Raises:
            ValueError: `steps` is less than 1.
        """
        if steps < 1:
            raise ValueError(f"A record covers at least one step, not {steps}.")
        last_step = self._steps + steps - 1
        rise_bytes = peak_bytes - max(start_bytes, current_bytes - self._given_back)
        added = _Growing(Window(self._steps, last_step, peak_bytes, current_bytes, start_bytes, rise_bytes), 1)
        if self._steps:
            self._given_back = max(self._given_back, start_bytes - current_bytes)
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
        min(left.window.start_bytes, right.window.start_bytes),
        max(left.window.rise_bytes, right.window.rise_bytes),
    )
    return _Growing(window, left.records + right.records)


class EpochRecorder:
    """At which step epochs begin: of every epoch, or of every second, fourth and so on where there are many.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = MAX_EPOCHS) -> None:
        self._most = most
        self._every = 1
        self._seen = 0
        self._begun: list[tuple[int, int]] = []

    def begin(self, number: int, step: int) -> None:
        """The epoch `number` begins with the step `step`."""
        if self._seen % self._every == 0:
            if len(self._begun) == self._most:
                self._begun = self._begun[::2]
                self._every *= 2
            if self._seen % self._every == 0:
                self._begun.append((number, step))
        self._seen += 1

    def before(self, step: int) -> tuple[tuple[int, int], ...]:
        """Number and first step of those that begin before `step`: one that had no step yet may never have any."""
        return tuple(epoch for epoch in self._begun if epoch[1] < step)
