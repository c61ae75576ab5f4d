"""What MemoryCallback does, without Keras: one run's estimate, peaks and profiles, and an orderly end in any case."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable

from tensorboard_plugin_memest.log.metadata import SUBDIRECTORY
from tensorboard_plugin_memest.log.process import part_of_process, worker_number
from tensorboard_plugin_memest.measure.allocator import Found
from tensorboard_plugin_memest.measure.batch_profiler import BatchProfiler
from tensorboard_plugin_memest.measure.cpu_allocator import WHAT_TO_DO
from tensorboard_plugin_memest.measure.explain import explain
from tensorboard_plugin_memest.measure.guard import Guard
from tensorboard_plugin_memest.measure.nvml import driver_totals
from tensorboard_plugin_memest.measure.profile import read_profile
from tensorboard_plugin_memest.measure.profile_files import find_profiles
from tensorboard_plugin_memest.measure.recording import Recording
from tensorboard_plugin_memest.measure.xplane import ProfileError
from tensorboard_plugin_memest.memory.estimate import Estimate

MEASURING = "measuring"
WRITING = "writing what was measured"
ESTIMATING = "estimating the model"
EXPLAINING = "explaining why memory ran out"
PROFILING = "profiling"
READING = "reading a profile"

_NO_EVENTS = (
    f"A profile holds no memory events, because the allocator that was used records none. On a CPU: {WHAT_TO_DO}"
)
_STILL_RUNNING = (
    "A profile was still running when training ended, so it is not shown here. Put MemoryCallback after the callback "
    "that profiles."
)
_ONE_PROFILES = (
    "Only the first worker makes a profile: in another, TensorFlow's profiler may corrupt memory and end the process."
)


class MeasuredFit:
    """One run in one directory, over any number of `fit` calls.

    However the training ends, `end` is called at the latest when the process does.

    Args:
        logdir: the run's directory.
        found: the allocators to measure.
        profile_batches: first and last batch to profile, counted from 1 over all of the run; None for no profile. Of
            several workers only the first profiles.
        guard: what turns memest's own failures into warnings.
    """

    def __init__(self, logdir: str, found: Found, profile_batches: tuple[int, int] | None, guard: Guard) -> None:
        self.logdir = logdir
        gpus = [one.device for one in found.allocators if one.device.startswith("GPU:")]
        totals, note = guard.run(MEASURING, driver_totals, gpus) or (None, None)
        self._recording = Recording(logdir, found, totals=totals)
        if note is not None:
            self._recording.note(note)
        self._estimate: Estimate | None = None
        # Of several processes each profiles into a directory of its own, and leaves alone what the others find there.
        own = guard.run(MEASURING, part_of_process, os.path.join(logdir, SUBDIRECTORY))
        self._profiled = os.path.join(logdir, SUBDIRECTORY, own) if own else logdir
        if profile_batches is not None and worker_number(os.environ.get("TF_CONFIG", "")):
            profile_batches = None
            self._recording.note(_ONE_PROFILES)
        self._profiles = profile_batches is not None
        self._profiler = BatchProfiler(self._profiled, profile_batches)
        self._guard = guard
        # Those of earlier runs, and those that were read.
        self._known_profiles = set(find_profiles(self._profiled))
        self._unreadable: dict[str, str] = {}
        self._has_own_profile = False
        self._is_over = True

    def begin(self) -> None:
        """A training begins. One that ended in the middle of a batch before leaves that batch out."""
        self._recording.discard()
        self._recording.begin_call()
        self._recording.open()
        self._is_over = False
        # Registering again would call it twice.
        atexit.unregister(self.end)
        atexit.register(self.end, process_ends=True)

    def log_estimate(self, log: Callable[[], Estimate | None]) -> Estimate | None:
        """Calls `log`, which writes an estimate and returns it; notes are kept beside it."""
        self._estimate = self._guard.run(ESTIMATING, log)
        return self._estimate

    def note(self, sentence: str) -> None:
        """Tells what could not be measured and what to do about it."""
        self._recording.note(sentence)

    @property
    def steps(self) -> int:
        """How many training steps were recorded."""
        return self._recording.steps

    def begin_batch(self, steps: int) -> None:
        """The next batch begins, of `steps` training steps."""
        if self._profiles:
            self._guard.run(PROFILING, self._profiler.begin, self._recording.steps)
        self._guard.run(MEASURING, self._recording.begin, steps)

    def end_batch(self, steps: int | None = None) -> None:
        """The batch is over; it was of `steps` steps, if that came out different from what was thought."""
        may_be_due = self._guard.run(MEASURING, self._recording.end, steps)
        if self._profiles and self._guard.run(PROFILING, self._profiler.end):
            self._has_own_profile = True
        if may_be_due:
            self._guard.run(WRITING, self._recording.write_if_due)

    def begin_other_batch(self, kind: str, steps: int) -> None:
        """The next batch of evaluation or prediction begins, `steps` of them at once."""
        self._guard.run(MEASURING, self._recording.begin, steps, kind)

    def end_other_batch(self) -> None:
        """It is over."""
        if self._guard.run(MEASURING, self._recording.end):
            self._guard.run(WRITING, self._recording.write_if_due)

    def fail(self, error: BaseException, kind: str | None = None) -> None:
        """`error` is about to leave the step that has begun; if it is about memory, it is explained in the log, now.

        `kind` is `"evaluate"` or `"predict"` for a batch of those.

        At once, because what follows is not sure: TensorFlow itself may end a process that has run out of memory.
        """
        self._guard.run(EXPLAINING, self._explain, error, kind)

    def _explain(self, error: BaseException, kind: str | None) -> None:
        steps = self._recording.steps
        phase, step = (kind, None) if kind else ("step" if steps else "first_step", steps)
        explanation = explain(error, self._estimate, phase=phase, step=step)
        if explanation is None:
            return
        used, limit = self._recording.in_use(explanation.device)
        full = explain(error, self._estimate, phase=phase, step=step, in_use_bytes=used, limit_bytes=limit)
        self._recording.end_with(error)
        self._recording.write_crash(full or explanation)

    def discard_batch(self) -> None:
        """The batch that has begun, if it was not recorded, was none."""
        self._recording.discard()
        self._guard.run(PROFILING, self._profiler.discard)

    def begin_epoch(self, number: int) -> None:
        """The epoch `number`, counted from 0, begins."""
        self._recording.begin_epoch(number)

    def end_epoch(self) -> None:
        """A good moment to write, and to read the profile that this run made itself.

        A batch that has begun was none: where the number of batches is unknown, Keras begins one more and finds that
        the data has ended.
        """
        self._recording.discard()
        self._guard.run(PROFILING, self._profiler.discard)
        self._guard.run(WRITING, self._recording.write_if_due, at_epoch_end=True)
        if self._has_own_profile:
            self._has_own_profile = False
            self._log_new_profiles()

    def end_training(self) -> None:
        """A training ended in order: writes all there is."""
        self._guard.run(PROFILING, self._profiler.close)
        self._is_over = not _profiler_is_running()
        if self._is_over:
            atexit.unregister(self.end)
        else:
            # Of a callback that comes after this one. Its profile is looked for once more in `end`.
            self._recording.note(_STILL_RUNNING)
        self._finish()

    def end(self, process_ends: bool = False) -> None:
        """Nothing more will come.

        A batch that is open died. If the process is ending with the exception that ended it, nothing was allocated
        since, and the batch is recorded up to there; otherwise, as in a notebook, it is unknown what was, and it is
        left out.
        """
        if self._is_over:
            return
        self._is_over = True
        atexit.unregister(self.end)
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        is_interactive = hasattr(sys, "ps1") or sys.flags.interactive
        if process_ends and error is not None and not is_interactive:
            self._guard.run(MEASURING, self._recording.end_with, error)
        self._recording.discard()
        self._guard.run(PROFILING, self._profiler.close)
        self._recording.withdraw(_STILL_RUNNING)
        self._finish()

    def _finish(self) -> None:
        self._log_new_profiles()
        self._guard.run(WRITING, self._recording.close)

    def _log_new_profiles(self) -> None:
        new = self._guard.run(READING, find_profiles, self._profiled) or []
        of_others = os.path.join(self._profiled, SUBDIRECTORY, "")
        for path in new:
            if path not in self._known_profiles and not path.startswith(of_others):
                self._guard.run(READING, self._log_profile, path)

    def _log_profile(self, path: str) -> None:
        try:
            profiles = read_profile(path, self._estimate)
        except ProfileError as error:
            # Perhaps another process is still writing it, so it stays new.
            self._recording.note(str(error))
            self._unreadable[path] = str(error)
            return
        self._known_profiles.add(path)
        self._recording.withdraw(self._unreadable.pop(path, ""))
        for profile in profiles:
            self._recording.write_profile(profile)
        if not profiles:
            self._recording.note(_NO_EVENTS)


def _profiler_is_running() -> bool:
    """Whether anything in this process profiles. TensorFlow has no public name for it."""
    try:
        from tensorflow.python.profiler import profiler_v2
    except ImportError:
        return False
    return getattr(profiler_v2, "_profiler", None) is not None
