"""The process that rehearses somebody's script, as it is: started with the GPU's allocator on the CPU."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import runpy
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.measure.cpu_allocator import bfc_limit
from tensorboard_plugin_memest.measure.explain import is_out_of_memory
from tensorboard_plugin_memest.measure.fit_batch import batch_size_of_fit, specs_of_fit
from tensorboard_plugin_memest.measure.host import available_bytes, resident_bytes
from tensorboard_plugin_memest.measure.host_room import OVERHEAD_BYTES, too_little_room
from tensorboard_plugin_memest.measure.monitor import OBSERVERS
from tensorboard_plugin_memest.measure.own_loop import OwnLoop
from tensorboard_plugin_memest.measure.play import Play, PlayCallback
from tensorboard_plugin_memest.measure.player import set_up
from tensorboard_plugin_memest.memory.estimate import Estimate

_NO_STEPS = (
    "The script called no fit(), applied no optimizer of Keras and used no memest.monitor, so its steps could not be "
    "told apart: all that it did counts as building."
)
_SEVERAL = "The script trains several times. Their steps are counted together, and what is predicted is for the first."
_OWN_LOOP = (
    "The script has a training loop of its own, whose steps were told apart by what its optimizers count. For an "
    "estimate beside it, mark the steps with memest.monitor(logdir, estimate=memest.estimate_function(...))."
)

# A profile keeps every event in memory. Where no step has begun after so many seconds it is given up.
_LONGEST_BUILD = 120.0


class _EnoughError(BaseException):
    """Ends the script: it was played as far as it was to be. No Exception, so that the script does not catch it."""


def main(place: str, script: str, max_steps: int, arguments: Sequence[str], is_module: bool = False) -> None:
    """Runs `script` until it has trained `max_steps` steps, and tells in the directory `place` how it went.

    Args:
        place: an existing directory.
        script: path of the script, or the name of a module.
        max_steps: after so many steps the script is ended.
        arguments: the script's own.
        is_module: which of both `script` is.
    """
    play = Play(place)
    set_up()
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.getcwd() if is_module else os.path.dirname(os.path.abspath(script)))
    play.begin(reset=False)  # resetting would make TensorFlow's devices, which the script may want to configure
    loop = OwnLoop(_UnmarkedLoop(play, max_steps))
    try:
        OBSERVERS.append(_LoopObserver(play, max_steps, loop))
        with loop.on(), _fit_is_counted(play, max_steps, loop), _profile_is_bounded(play):
            if is_module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        _end(play)
    except _EnoughError:
        print()  # Keras leaves its progress bar open.
    except SystemExit as error:
        if error.code in (None, 0):
            _end(play)
        elif not play.is_over:
            play.tell(failed="", failed_with=f"the script ended with exit status {error.code!r}.")
    except BaseException as error:
        if not play.is_over:
            if loop.is_in_step:
                play.is_step()
            play.died(error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _end(play: Play) -> None:
    """The script ended by itself."""
    if not play.is_over:
        if not play.steps:
            play.note(_NO_STEPS)
            play.built()
        play.completed()


class _ScriptCallback(PlayCallback):
    """Tells a Play of the steps of a script's `fit`, with an estimate for them, and ends the script after enough."""

    _is_estimate_due = False

    def on_train_begin(self, logs: Any = None) -> None:
        """The model is there: estimates it."""
        if self._play.estimate is not None or self._play.steps:
            if self._play.steps:
                self._play.note(_SEVERAL)
            return
        self._play.built()
        if self.model.built:
            self._estimate({})
        else:
            # By its first batch, or never: one whose own step calls its parts, and never itself, is not.
            self._is_estimate_due = True

    def _estimate(self, looks: dict[str, Any]) -> None:
        try:
            self._play.estimate = estimate(self.model, batch_size=batch_size_of_fit(), **looks)
        except Exception as error:
            self._play.note(f"There is no estimate beside it: {type(error).__name__}: {error}")
        # What was built already has its memory, so it is still to be had, in a way.
        left, held = available_bytes(), resident_bytes()
        room = left + max(0, held - OVERHEAD_BYTES) if left is not None and held is not None else left
        refused = too_little_room(self._play.estimate, bfc_limit(), room)
        if refused:
            self._play.tell(refused=refused)
            raise _EnoughError
        self._play.tell()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """The step is over."""
        super().on_train_batch_end(batch, logs)
        if self._is_estimate_due:
            self._is_estimate_due = False
            self._estimate({} if self.model.built else specs_of_fit())
        if self._play.steps >= self._most_steps:
            self._play.completed()
            raise _EnoughError


class _LoopObserver:
    """Tells a Play of the steps of a script's own loop, if it is measured by `memest.monitor`."""

    def __init__(self, play: Play, max_steps: int, unmarked: OwnLoop) -> None:
        self._play = play
        self._max_steps = max_steps
        self._unmarked = unmarked
        self._marked = contextlib.ExitStack()

    def begin(self, estimate: Estimate | None) -> None:
        """A step begins; with the first of them building is over."""
        self._marked.enter_context(self._unmarked.paused())
        if not self._play.steps:
            self._play.estimate = estimate
            self._play.built()
        self._play.begin_step()

    def end(self, steps: int) -> None:
        """It is over."""
        self._marked.close()
        _end_step(self._play, steps, self._max_steps)


class _UnmarkedLoop:
    """Tells a Play of the steps of a script's own loop, if nobody marks them."""

    def __init__(self, play: Play, max_steps: int) -> None:
        self._play = play
        self._max_steps = max_steps

    def may_begin(self) -> None:
        """A step begins, or something else."""
        if not self._play.is_over:
            self._play.may_begin_step()

    def applies(self) -> None:
        """It is a step."""
        if not self._play.is_over:
            self._play.note(_OWN_LOOP)
            self._play.is_step()

    def ended(self, steps: int) -> None:
        """It was so many steps."""
        if self._play.is_over:
            return
        self.applies()
        _end_step(self._play, steps, self._max_steps)

    def failed(self, error: Exception) -> None:
        """Memory ran out in what is taken for a step."""
        if not self._play.is_over:
            self._play.died(error)
            raise _EnoughError from error


def _end_step(play: Play, steps: int, max_steps: int) -> None:
    play.end_step(steps)
    if play.profile_is_due:
        play.end_profile()
    if play.steps >= max_steps:
        play.completed()
        raise _EnoughError


@contextlib.contextmanager
def _profile_is_bounded(play: Play) -> Iterator[None]:
    timer = threading.Timer(_LONGEST_BUILD, play.drop_profile_while_building)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def _fit_is_counted(play: Play, max_steps: int, unmarked: OwnLoop) -> Iterator[None]:
    """While it lasts, every `fit` has a callback more.

    Keras has no place where a callback could be registered for all models, so its `fit` is wrapped, in this process,
    which exists for nothing else.
    """
    fit = keras.Model.fit
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def counted(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        callbacks = bound.arguments.get("callbacks")
        counting = _ScriptCallback(play, max_steps)
        if isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks.append(counting)
        else:
            bound.arguments["callbacks"] = [counting, *(keras.tree.flatten(callbacks) if callbacks else [])]
        try:
            with unmarked.paused():
                return fit(*bound.args, **bound.kwargs)
        except Exception as error:
            # The script may catch it and go on with less, but the rehearsal is over here.
            if not play.is_over and is_out_of_memory(error):
                play.died(error)
                raise _EnoughError from error
            raise

    keras.Model.fit = counted
    try:
        yield
    finally:
        keras.Model.fit = fit
