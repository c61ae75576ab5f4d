"""A training that is rehearsed, inside the process that trains: measured, and told before anything can happen."""

from __future__ import annotations

import glob
import json
import os
import traceback
from dataclasses import asdict, replace
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.measure.attributed import attributed
from tensorboard_plugin_memest.measure.cpu_allocator import bfc_limit
from tensorboard_plugin_memest.measure.explain import explain
from tensorboard_plugin_memest.measure.profile import alive_at_end, measured_profiles
from tensorboard_plugin_memest.measure.told import FILE
from tensorboard_plugin_memest.measure.xplane import SUFFIX, Profile, read_xplane
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.rehearsal import MeasuredPhase
from tensorboard_plugin_memest.memory.timeline import Span, Timeline

# Building and this many steps are in the timeline; more would repeat themselves and take memory and time.
PROFILED_STEPS = 3

_DEVICE = "CPU:0"


class Play:
    """Measures building and the steps of one training, and keeps a file up to date that tells how far it got.

    The file is complete after each method: a process that ran out of memory may be killed at any time, and TensorFlow
    itself may abort it while it frees what is left.

    Args:
        place: an existing directory for the file and for the profile.

    Attributes:
        steps: how many steps got through.
        is_over: whether the end was told.
        estimate: of the training; set it when it is known.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self.steps = 0
        self.is_over = False
        self.estimate: Estimate | None = None
        self._phase = "build"
        self._phases: dict[str, MeasuredPhase] = {}
        self._notes: list[str] = []
        self._profiles = False
        self._marker: Any = None

    def begin(self, reset: bool = True) -> None:
        """What follows is building.

        Args:
            reset: whether the peak so far is forgotten. Not where TensorFlow has not begun, for it would begin.
        """
        tf.profiler.experimental.start(self._place)
        self._profiles = True
        self._mark("build")
        if reset:
            tf.config.experimental.reset_memory_stats(_DEVICE)

    def built(self) -> None:
        """Building is over; what follows, until the first step begins, is nobody's."""
        self._measure(0, completed=True)
        self._end_marker()
        self._phase = "first_step"
        self.tell()

    def may_begin_step(self) -> None:
        """What follows is a step, or still belongs to building: `end_step`, if it is called, tells."""
        if self._phase == "build":
            self._measure(0, completed=True)
            self.tell()
            tf.config.experimental.reset_memory_stats(_DEVICE)
        else:
            self.begin_step()

    def is_step(self) -> None:
        """What `may_begin_step` announced is a step."""
        if self._phase == "build":
            self._end_marker()
            self._phase = "first_step"
            self.tell()

    def begin_step(self) -> None:
        """A step begins."""
        if self._profiles:
            self._mark(f"step {self.steps}")
        tf.config.experimental.reset_memory_stats(_DEVICE)

    def end_step(self, steps: int = 1) -> None:
        """The step, or the `steps` that ran together, got through."""
        self._measure(steps, completed=True)
        self._end_marker()
        self.steps += steps
        self._phase = "step"
        self.tell()

    @property
    def profile_is_due(self) -> bool:
        """Whether enough steps are in the profile. Ending it takes memory and time, so not within a step."""
        return self._profiles and self.steps >= PROFILED_STEPS

    def end_profile(self) -> None:
        """Ends the profile and tells the timeline."""
        profile = self._end_profile()
        if profile is not None:
            timeline = _timeline(profile, self.estimate)
            self.tell(timeline=timeline.to_dict() if timeline else None)

    def drop_profile_while_building(self) -> None:
        """Gives the profile up if no step has begun, because it keeps every event in memory."""
        if self._profiles and self._phase == "build":
            self._profiles = False
            self._marker = None
            tf.profiler.experimental.stop(save=False)
            self.note("No step had begun for so long that the timeline was given up.")

    def note(self, sentence: str) -> None:
        """Tells how it was played."""
        if sentence not in self._notes:
            self._notes.append(sentence)

    def died(self, error: BaseException) -> bool:
        """`error` ended the training. True if it is about memory."""
        self.is_over = True
        # What it died of goes first; the rest may not be reached.
        explanation = self._explain(error, ())
        if explanation is None:
            self.tell(failed="".join(traceback.format_exception(error)), failed_with=f"{type(error).__name__}: {error}")
            return False
        self._measure(1 if self._phase != "build" else 0, completed=False)
        self.tell(explanation=explanation.to_dict())
        profile = self._end_profile()
        if profile is not None:
            timeline = _timeline(profile, self.estimate)
            live = alive_at_end(profile, self.estimate)
            known = attributed(live, self._phase, self.estimate, explanation.shape)
            full = self._explain(error, known) or explanation
            self.tell(explanation=full.to_dict(), timeline=timeline.to_dict() if timeline else None)
        return True

    def completed(self) -> None:
        """All that was to be played got through."""
        self.is_over = True
        self.end_profile()
        self.tell(completed=True)

    def tell(self, **more: Any) -> None:
        """Writes the file anew, with what is known, and `more` of it from now on."""
        self._told = {**getattr(self, "_told", {}), **more}
        told = {
            "completed": False,
            "explanation": None,
            "timeline": None,
            "phase": self._phase,
            **self._told,
            "phases": [asdict(phase) for phase in self._phases.values()],
            "estimate": self.estimate.to_json() if self.estimate else None,
            "notes": self._notes,
        }
        path = os.path.join(self._place, FILE)
        with open(f"{path}.new", "w") as file:
            json.dump(told, file)
        os.replace(f"{path}.new", path)

    def _measure(self, steps: int, completed: bool) -> None:
        info = tf.config.experimental.get_memory_info(_DEVICE)
        before = self._phases.get(self._phase, MeasuredPhase(self._phase, 0, 0, 0, True))
        self._phases[self._phase] = MeasuredPhase(
            self._phase, max(before.peak_bytes, info["peak"]), info["current"], before.steps + steps, completed
        )

    def _explain(self, error: BaseException, live: tuple[Item, ...]) -> Explanation | None:
        return explain(
            error,
            self.estimate,
            phase=self._phase,
            step=None if self._phase == "build" else self.steps,
            in_use_bytes=tf.config.experimental.get_memory_info(_DEVICE)["peak"],
            limit_bytes=bfc_limit(),
            live=live,
        )

    def _mark(self, name: str) -> None:
        self._end_marker()
        number = -1 if name == "build" else self.steps
        self._marker = tf.profiler.experimental.Trace(name, step_num=number, _r=1)
        self._marker.__enter__()

    def _end_marker(self) -> None:
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.__exit__(None, None, None)

    def _end_profile(self) -> Profile | None:
        if not self._profiles:
            return None
        self._end_marker()
        self._profiles = False
        tf.profiler.experimental.stop()
        (path,) = glob.glob(os.path.join(self._place, "plugins", "profile", "*", f"*{SUFFIX}"))
        return read_xplane(path)


class PlayCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Tells a Play of the steps of a `fit`.

    Args:
        play: what to tell.
        most_steps: after so many the training is asked to stop.
    """

    def __init__(self, play: Play, most_steps: int) -> None:
        super().__init__()
        self._play = play
        self._most_steps = most_steps

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """A step begins."""
        self._first = batch
        self._play.begin_step()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """The step is over."""
        self._play.end_step(max(1, batch - self._first + 1))
        if self._play.profile_is_due:
            self._play.end_profile()
        if self._play.steps >= self._most_steps:
            self.model.stop_training = True


def _timeline(profile: Profile, estimate: Estimate | None) -> Timeline | None:
    """The curve of the allocator that holds the model, with a span for building and for each step."""
    curves = [one.timeline for one in measured_profiles(profile, estimate) if "cpu" in one.allocator]
    if not curves:
        return None
    marked = [Span(step.name, step.start_ns, step.end_ns) for step in profile.steps]
    return replace(max(curves, key=lambda curve: curve.peak_bytes), spans=tuple(marked))
