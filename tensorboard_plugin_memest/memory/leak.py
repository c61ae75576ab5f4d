"""Memory that is never given back: growth of what stays in use after the steps of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tensorboard_plugin_memest.memory.measured import CALLS, EVALUATE, PREDICT, TRAIN, Window
from tensorboard_plugin_memest.memory.units import KIB, MIB, format_bytes

# Growth below this is not worth a person's attention; a process's resident set moves by more for no reason.
LEAST_ON_DEVICE = 64 * KIB
LEAST_ON_HOST = 32 * MIB

# When something is in use, what the steps are called, and what makes it grow.
_OF_STEPS = (
    "A dataset's cache that is still being filled does that; if there is none, something keeps tensors from step to "
    "step, such as a list of losses, or functions that are traced anew."
)
# With TensorFlow 2.21 and Keras 3.15 the variables of a model that was trained as a graph stayed when the model was
# gone, after `clear_session` and a garbage collection too; those of an eager one went.
_OF_CALLS = (
    "Models that are made for each call do that: what their functions were traced for stays, with "
    "keras.utils.clear_session() too, so train one model again from its first weights, or each in its own process. "
    "Otherwise something keeps models, datasets or results from call to call."
)
_IN_WORDS = {
    TRAIN: ("stays in use after a step", "step", _OF_STEPS),
    EVALUATE: ("stays in use after a batch of evaluate", "batch", _OF_STEPS),
    PREDICT: ("stays in use after a batch of predict", "batch", _OF_STEPS),
    CALLS: ("is in use when fit, evaluate or predict begins", "call", _OF_CALLS),
}

# A stretch that grows is cut into so many parts, each with a few windows, and has to grow in each of them.
_PARTS = 4
_WINDOWS_A_PART = 3
# Calls are few, and each is a chance to let go of everything.
_CALLS_A_PART = 2
# A part that grows less than this share of the mean has come to rest.
_SLOWEST = 0.25
# Growth that has not come for so many times the longest pause before has come to rest.
_LONGER = 1.5
# Of all growth, so much may have happened when it is said to begin.
_BEGUN = 0.02


@dataclass(frozen=True)
class Leak:
    """Growth that goes on until the end of what was measured.

    Attributes:
        since_step: the last step before it began.
        until_step: the last step that was measured.
        grown_bytes: by how much more stays in use after a step at the end than at the beginning.
    """

    since_step: int
    until_step: int
    grown_bytes: int

    @property
    def bytes_per_step(self) -> float:
        """The mean growth a step."""
        return self.grown_bytes / (self.until_step - self.since_step)

    def sentence(self, where: str, what: str = TRAIN) -> str:
        """It in words.

        Args:
            where: what grows: `"CPU:0"`.
            what: what the steps are: `"train"`, or what was measured beside.
        """
        when, step, causes = _IN_WORDS.get(what, _IN_WORDS[TRAIN])
        slope, grown = format_bytes(round(self.bytes_per_step)), format_bytes(self.grown_bytes)
        return (
            f"{where}: what {when} grows by {slope} a {step} since {step} {self.since_step}, by {grown} until {step} "
            f"{self.until_step}, and has not come to rest. {causes}"
        )


def find_leak(windows: Sequence[Window], least_bytes: int = LEAST_ON_DEVICE, what: str = TRAIN) -> Leak | None:
    """The growth of what is in use after the steps, if it goes on until the last of them; None if it does not.

    Only what is never given back counts: of every step the least that is in use after it or after any later one. So it
    is no leak that a buffer is filled and emptied in turns, that the first steps create variables, or that what is in
    use rises and then stays.

    Args:
        windows: the steps of a run, in order.
        least_bytes: growth of less is not told.
        what: what the steps are, as for `Leak.sentence`.
    """
    a_part = _CALLS_A_PART if what == CALLS else _WINDOWS_A_PART
    floors: list[int] = []
    for window in reversed(windows):
        floors.append(min(window.current_bytes, floors[-1]) if floors else window.current_bytes)
    floors.reverse()
    # The earliest stretch that grows all the way, to more than there ever was, tells since when.
    ever = 0
    for start in range(max(0, len(floors) - _PARTS * a_part)):
        ever = max(ever, windows[start].current_bytes)
        if floors[-1] - max(ever, floors[start]) < least_bytes:
            return None
        if _grows_throughout(floors[start:]) and not _rests(floors[start:], a_part):
            return _leak(windows, floors, start)
    return None


def _grows_throughout(floors: Sequence[int]) -> bool:
    last = len(floors) - 1
    marks = [floors[part * last // _PARTS] for part in range(_PARTS + 1)]
    mean = (marks[-1] - marks[0]) / _PARTS
    return all(after - before >= _SLOWEST * mean > 0 for before, after in pairwise(marks))


def _rests(floors: Sequence[int], a_part: int) -> bool:
    """Whether nothing has grown for longer than the pauses before let expect; growth may come once an epoch."""
    rises = [index for index, (before, after) in enumerate(pairwise(floors)) if after > before]
    longest = max((after - before for before, after in pairwise([-1, *rises])), default=0)
    return len(floors) - 2 - rises[-1] > max(_LONGER * longest, a_part)


def _leak(windows: Sequence[Window], floors: Sequence[int], start: int) -> Leak:
    """The leak in the stretch from `start` on, without what lies flat before it begins."""
    begun = floors[start] + _BEGUN * (floors[-1] - floors[start])
    first = max(index for index in range(start, len(floors)) if floors[index] <= begun)
    return Leak(windows[first].last_step, windows[-1].last_step, floors[-1] - floors[first])
