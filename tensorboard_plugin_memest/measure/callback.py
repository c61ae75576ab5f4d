"""A Keras callback that logs the estimate of a training and measures its memory."""

from __future__ import annotations

import inspect
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.log.given_limit import kept_limit
from tensorboard_plugin_memest.log.logdir import resolve_logdir
from tensorboard_plugin_memest.measure.allocator import Found, find_allocators
from tensorboard_plugin_memest.measure.batch_profiler import parse_profile_batch
from tensorboard_plugin_memest.measure.fit import MEASURING, MeasuredFit
from tensorboard_plugin_memest.measure.fit_batch import batch_size_of_fit, specs_of_fit
from tensorboard_plugin_memest.measure.guard import Guard
from tensorboard_plugin_memest.measure.watch import unwatch, watch
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.limits import resolve_limit
from tensorboard_plugin_memest.memory.measured import EVALUATE, PREDICT

TRAIN_FUNCTION = "train_function"
_FUNCTIONS = {EVALUATE: "test_function", PREDICT: "predict_function"}

# So a function of the model tells that an epoch's data, whose length was not known, is over. Nothing failed.
_END_OF_DATA = (StopIteration, tf.errors.OutOfRangeError)

LogModel = Callable[..., "Estimate | None"]


class MemoryCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Logs what a training will need, and measures what it does need, for TensorBoard's Memory tab.

    When `fit` begins it logs the estimate of the model; of a model that its first batch builds, after that batch. It
    records, batch by batch, the highest number of bytes in use (the peak that
    `tf.config.experimental.get_memory_info` reports, reset before each batch) and those in use after it, on every
    device whose allocator counts. Memory profiles that appear in `logdir` during the training are
    added, and it can make one itself. Validation is not part of any training batch; batches of validation, and those of
    `evaluate` and `predict`, which take this callback, too, are recorded apart. Beside the devices' memory it records
    the process's resident set before the first step and after steps, ten times a second at most.

    The training stays as it is: nothing random is touched, nothing waits for a device, and if a part of memest fails,
    it warns once (RuntimeWarning) and the training goes on without it. A batch is measured when the model's function
    for it returns, in the same thread, so a Keras that calls its callbacks in a thread beside the training goes on
    doing so (`async_safe`).

    Given to `fit` again with the same model, it goes on counting; with another model, or when its `logdir` was changed,
    it begins anew. A training that dies is recorded up to the batch it died in: at once, with an explanation for the
    Memory tab, if it ran out of memory, and otherwise when the process ends. The error goes on unchanged.

    Args:
        logdir: the run's log directory, the one for TensorBoard; records go to its subdirectory `memest`.
        batch_size: examples a step; None for that of `fit`, of the model or, where neither tells, 32.
        limit: memory of the device to judge by: bytes, text such as `"9.29GiB"`, or a GPU's name; None for the
            one that this process last gave to `log_model` for the same `logdir`, else the device's own.
        profile_batch: batch or pair of first and last batch to profile, as in `keras.callbacks.TensorBoard`: counted
            from 1, 0 for none; later calls of `fit` go on counting. With `steps_per_execution` a batch is one
            execution. The profile goes to `logdir/plugins/profile`, where XProf finds it too. Of several workers that
            `TF_CONFIG` names the first profiles alone: in others TensorFlow's profiler may end the process.
        allocators: finds the allocators to measure; for tests and other sources of numbers.
        log_model: logs an estimate; None for `memest.log_model`.
        **as_for_estimate: as for `memest.estimate`.

    Raises:
        ValueError: an argument is wrong, or Keras does not run on TensorFlow.
        TypeError: an argument is unknown or of a wrong type.
    """

    # Keras calls callbacks in a thread beside the training only if each that has a hook for the end of a batch says so.
    async_safe = True

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        *,
        batch_size: int | None = None,
        limit: int | str | None = None,
        profile_batch: int | str | tuple[int, int] | list[int] = 0,
        allocators: Callable[[], Found] = find_allocators,
        log_model: LogModel | None = None,
        **as_for_estimate: Any,
    ) -> None:
        super().__init__()
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                f"MemoryCallback measures TensorFlow's allocators, but Keras runs on {keras.backend.backend()!r}. Set "
                "KERAS_BACKEND=tensorflow in the environment before Keras is imported."
            )
        self.logdir = resolve_logdir(logdir)
        self._profile_batches = parse_profile_batch(profile_batch)
        self._for_log_model = _checked(batch_size, limit, as_for_estimate)
        self._allocators = allocators
        self._log_model = log_model
        self._guard = Guard()
        self._run: MeasuredFit | None = None
        # What the run is of, and what was estimated; weak, for a callback must not keep a model alive.
        self._measured_model: Callable[[], Any] = _nothing
        self._in_training = False
        # The thread that runs the batch that has begun; None if none has.
        self._thread: int | None = None
        self._steps_per_execution = 1
        self._other = EVALUATE
        self._is_estimated = False
        self._estimate_is_due = False
        self._estimated_optimizer: Callable[[], Any] = _nothing
        self._finalizer: weakref.finalize[Any, Any] | None = None

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Logs the estimate and makes ready to measure."""
        self._guard.run(MEASURING, self._begin_training)

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The peak is counted from here."""
        self._thread = threading.get_ident()
        if self._run is not None:
            self._run.begin_batch(1 if self._steps_per_execution == 1 else self._steps_of(batch))

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The peak is read, if it was not when the model's function returned: loops of one's own may do without it."""
        if self._thread is not None and self._thread == threading.get_ident():
            self._end_batch()

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Notes with which step the epoch begins."""
        if self._run is not None:
            self._run.begin_epoch(epoch)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Writes, if it is time to."""
        if self._run is not None:
            self._run.end_epoch()

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Writes all there is and the profiles that appeared."""
        unwatch(self.model, TRAIN_FUNCTION)
        self._in_training = False
        if self._run is not None:
            self._run.end_training()

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Evaluation begins, by itself or within `fit`."""
        self._begin_other(EVALUATE)

    def on_test_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The peak of a batch of evaluation is counted from here."""
        self._begin_other_batch(EVALUATE, batch)

    def on_test_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The peak is read, if it was not yet."""
        if self._thread == threading.get_ident():
            self._end_other_batch()

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Evaluation is over."""
        self._end_other(EVALUATE)

    def on_predict_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Prediction begins."""
        self._begin_other(PREDICT)

    def on_predict_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The peak of a batch of prediction is counted from here."""
        self._begin_other_batch(PREDICT, batch)

    def on_predict_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The peak is read, if it was not yet."""
        if self._thread == threading.get_ident():
            self._end_other_batch()

    def on_predict_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Prediction is over."""
        self._end_other(PREDICT)

    def _end_batch(self) -> None:
        if self._thread is None:
            return
        self._thread = None
        if self._run is not None:
            self._run.end_batch()
            if self._estimate_is_due:
                self._guard.run(MEASURING, self._estimate_now, self._run)

    def _begin_other(self, kind: str) -> None:
        if not self._in_training:
            self._guard.run(MEASURING, self._begin_run)
        watched = (self.model, _FUNCTIONS[kind], self._end_other_batch, self._tell_of_other_error)
        self._guard.run(MEASURING, watch, *watched)
        self._other = kind

    def _begin_other_batch(self, kind: str, batch: int) -> None:
        self._thread = threading.get_ident()
        if self._run is not None:
            self._run.begin_other_batch(kind, self._steps_of(batch))

    def _end_other_batch(self) -> None:
        if self._thread is None:
            return
        self._thread = None
        if self._run is not None:
            self._run.end_other_batch()

    def _end_other(self, kind: str) -> None:
        unwatch(self.model, _FUNCTIONS[kind])
        if self._run is not None and not self._in_training:
            self._run.end_training()

    def _tell_of_other_error(self, error: BaseException) -> None:
        if isinstance(error, _END_OF_DATA):
            return
        unwatch(self.model, _FUNCTIONS[self._other])
        if self._run is not None:
            self._run.fail(error, self._other)

    def _begin_training(self) -> None:
        run = self._begin_run()
        self._in_training = True
        # A model that was compiled again trains differently.
        optimizer = getattr(self.model, "optimizer", None)
        if not self._is_estimated or self._estimated_optimizer() is not optimizer:
            self._is_estimated = True
            self._estimated_optimizer = weakref.ref(optimizer) if optimizer is not None else _nothing
            # A model that is built by its first batch does not say before what it takes.
            self._estimate_is_due = not self.model.built and "inputs" not in self._for_log_model
            if not self._estimate_is_due:
                self._estimate(run)
        watch(self.model, TRAIN_FUNCTION, self._end_batch, self._tell_of_error)

    def _begin_run(self) -> MeasuredFit:
        self._in_training = False
        logdir = resolve_logdir(self.logdir)
        if self._run is None or self._run.logdir != logdir or self._measured_model() is not self.model:
            if self._finalizer is not None:
                self._finalizer()
            # The peak so far is read here, before the estimate is made.
            self._run = MeasuredFit(logdir, self._allocators(), self._profile_batches, self._guard)
            self._finalizer = weakref.finalize(self, self._run.end)
            # At the end of the process the run sees to itself, because it must know that it is the end.
            self._finalizer.atexit = False
            self._measured_model = weakref.ref(self.model)
            self._is_estimated = False
        self._run.begin()
        # Compiling sets it, which ends what was begun.
        self._steps_per_execution = getattr(self.model, "steps_per_execution", 1) or 1
        return self._run

    def _tell_of_error(self, error: BaseException) -> None:
        if isinstance(error, _END_OF_DATA):
            return
        unwatch(self.model, TRAIN_FUNCTION)
        self._in_training = False
        if self._run is not None:
            self._run.fail(error)

    def _estimate_now(self, run: MeasuredFit) -> None:
        self._estimate_is_due = False
        self._estimate(run)

    def _estimate(self, run: MeasuredFit) -> None:
        batch_size = self._for_log_model["batch_size"] or batch_size_of_fit()
        # A model whose own step calls its parts, and never itself, is not built even then.
        looks = {} if self.model.built else specs_of_fit()
        arguments = {**looks, **self._for_log_model, "batch_size": batch_size, "logdir": run.logdir}
        if arguments["limit"] is None:
            # This estimate replaces the one that was logged with it.
            arguments["limit"] = kept_limit(run.logdir)

        def log() -> Estimate | None:
            log_model = self._log_model or _default_log_model()
            return log_model(self.model, **arguments)

        made = run.log_estimate(log)
        if made is not None and batch_size is None:
            run.note(
                "The batch size of this training could not be found out; the estimate is for "
                f"{made.subject.batch_size}. Pass batch_size to MemoryCallback."
            )

    def _steps_of(self, batch: int) -> int:
        """How many steps the execution that begins with step `batch` runs."""
        if self._steps_per_execution == 1:
            return 1
        return self._guard.run(MEASURING, self._steps_left, batch) or 1

    def _steps_left(self, batch: int) -> int:
        steps = self._steps_per_execution
        total = (self.params or {}).get("steps")
        return max(1, min(steps, total - batch)) if total else steps


def _nothing() -> None:
    return None


def _default_log_model() -> LogModel:
    # Late, because estimating is much code that a script which only measures does not need.
    from tensorboard_plugin_memest.api import log_model

    return log_model


def _checked(batch_size: int | None, limit: int | str | None, as_for_estimate: dict[str, Any]) -> dict[str, Any]:
    """The arguments for `log_model`, refused here rather than in the middle of a training."""
    if batch_size is not None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int):
            raise TypeError(f"batch_size is the number of examples a step, an integer, not {batch_size!r}.")
        if batch_size < 1:
            raise ValueError(f"batch_size is the number of examples a step, at least 1, not {batch_size}.")
    if limit is not None:
        resolve_limit(limit)
    if as_for_estimate:
        from tensorboard_plugin_memest import estimate

        inspect.signature(estimate).bind(None, batch_size=batch_size, **as_for_estimate)
    return {"batch_size": batch_size, "limit": limit, **as_for_estimate}
