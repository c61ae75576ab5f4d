"""A training step outside Keras to an Estimate, with nothing of it allocated."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras
from tensorflow.python.eager import context as tf_context

from tensorboard_plugin_memest.estimation.around import around
from tensorboard_plugin_memest.estimation.constants import apart_from_the_device
from tensorboard_plugin_memest.estimation.device import Device, training_device
from tensorboard_plugin_memest.estimation.garbage import without_full_collections
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.mode import check_mode
from tensorboard_plugin_memest.estimation.model import assemble
from tensorboard_plugin_memest.estimation.plain_python import plain_python
from tensorboard_plugin_memest.estimation.step_function import training_of_step
from tensorboard_plugin_memest.estimation.subject import positive_batch_size, require_tensorflow
from tensorboard_plugin_memest.estimation.tf_functions import untouched_functions
from tensorboard_plugin_memest.estimation.xla.compilation import checked_timeout
from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.what_if import WhatIf


@plain_python
def estimate_function(
    step_function: Callable[..., Any],
    *specs: Any,
    batch_size: int | None = None,
    jit_compile: bool | None = None,
    run_eagerly: bool = False,
    device: str | None = None,
    compile_timeout: float | None = None,
    **named_specs: Any,
) -> Estimate:
    """Predicts the memory of a training loop's step, such as one with `tf.GradientTape`, without running it.

    The function is traced as `tf.function` does it, so Python code in it runs once; it is optimized as TensorFlow
    would, and played op by op through a replay of TensorFlow's allocator. A loop without `tf.function` is followed op
    by op instead (`run_eagerly=True`): tensors are there as long as a gradient tape or a name in Python holds them.
    What the function uses is found in its closure, in globals and in `self`: any number of models, optimizers, metrics,
    modules and plain variables. They are left as they were; variables that its first call creates, such as an
    optimizer's slots, get no memory.

    Args:
        step_function: a `tf.function`; or a Python function, which is estimated as if it were one unless `run_eagerly`
            says that it is called as it is.
        specs: its arguments: for a tensor a `tf.TensorSpec` (or a tensor or array of that shape) or a structure of
            them, for an iterator or dataset that or its spec; anything else is passed on as it is. May be left away
            where the function has an `input_signature`.
        batch_size: what a first dimension of None is taken for. None takes it from the specs' first dimension.
        jit_compile: True for XLA, False for graph mode; None for what the `tf.function` says of itself.
        run_eagerly: True for eager mode: a loop that calls a Python function which is no `tf.function`, or that sets
            `tf.config.run_functions_eagerly(True)`. What the function asks tensors for in Python (`.numpy()`, `float`,
            `if loss < 0`) is taken for ones where nothing constant tells it.
        device: `"CPU"`, `"GPU"`, or the name of a GPU or a cloud instance type, such as `"RTX 3080"`, whose memory is
            then the limit; None for the device this process would train on.
        compile_timeout: seconds that XLA may take to compile the step, as for `memest.estimate`.
        named_specs: its keyword arguments, likewise. An argument that is called like one of this function's own can be
            given with `functools.partial`.

    Returns:
        An Estimate with the phases `first_step` and `step`; all its numbers are bytes. The arguments count as alive
        during the whole step, since the loop holds them.

    Raises:
        TypeError: `step_function` is not callable.
        ValueError: the arguments do not fit it, or a size is not known before the run; the text says what to pass.
        RuntimeError: the function cannot be traced; the text and the cause say why.
    """
    require_tensorflow()
    if not callable(step_function):
        raise TypeError(
            f"The first argument of estimate_function must be a tf.function or a Python function, not "
            f"{step_function!r} of type {type(step_function).__name__}."
        )
    if not (jit_compile is None or isinstance(jit_compile, bool)):
        raise UsageError(
            f"jit_compile={jit_compile!r}: pass True for XLA, False for graph mode, or None for what the function says."
        )
    check_mode(jit_compile, run_eagerly)
    timeout = checked_timeout(compile_timeout)
    apart_from_the_device()
    origin = _Origin(step_function, specs, named_specs, training_device(device), jit_compile, run_eagerly, timeout)
    return origin.estimate(batch_size)


@dataclass
class _Origin:
    """What an estimate was made of: it gives the estimate for any other batch size."""

    step_function: Callable[..., Any]
    specs: tuple[Any, ...]
    named_specs: dict[str, Any]
    device: Device
    jit_compile: bool | None
    run_eagerly: bool
    compile_timeout: float
    batch_size: int = 0  # that of the first estimate

    def estimate(
        self, batch_size: int | None, instead_of: int | None = None, optimizer: Callable[[], Any] | None = None
    ) -> Estimate:
        # Whatever graph or function the caller is building, nothing goes into it.
        with tf_context.eager_mode(), untouched_globals(), untouched_functions(), without_full_collections():
            with other_optimizers(self.optimizers() if optimizer else [], optimizer):
                training = training_of_step(
                    self.step_function,
                    self.specs,
                    self.named_specs,
                    batch_size,
                    instead_of,
                    self.jit_compile,
                    run_eagerly=self.run_eagerly,
                )
            training.discard()
            self.batch_size = self.batch_size or training.batch_size
            return replace(assemble(training, self.device, self.compile_timeout), origin=self)

    def optimizers(self) -> list[Any]:
        """The Keras optimizers that the step function uses, what scales the loss around them left out."""
        found = around([self.step_function, self.specs, self.named_specs])
        return [
            thing
            for thing in found
            if isinstance(thing, keras.optimizers.Optimizer)
            and not isinstance(thing, keras.optimizers.LossScaleOptimizer)
        ]

    def varied(self, batch_size: int | None, optimizer: Callable[[], Any] | None) -> Estimate:
        """The estimate for another batch size, or with other optimizers in place of those that are used."""
        return self.estimate(batch_size or self.batch_size, self.batch_size, optimizer)

    def at_batch_size(self, batch_size: int) -> Estimate:
        """The estimate for arguments whose first dimension is `batch_size`, where it was the batch size before.

        Raises:
            ValueError: the batch size is no positive integer.
            RuntimeError: the step function works for its own batch size only.
        """
        return self.estimate(positive_batch_size(batch_size), self.batch_size)

    def what_if(self, estimate: Estimate, seconds: float | None) -> WhatIf:
        """Refused: what a function makes its model and optimizer of cannot be chosen from outside.

        Raises:
            ValueError: always; the text says what can be asked instead.
        """
        raise UsageError(
            f"what_if() makes a model again with other choices, and what the step function {self.step_function!r} "
            "trains cannot be made again. Ask advice(limit), at_batch_size(n) or max_batch_size(limit), or "
            "memest.estimate(model, ...) for a model that it trains, and that for what_if()."
        )

    def advice(self, estimate: Estimate, limit_bytes: int, seconds: float | None) -> Advice:
        """What to change so that the step fits into `limit_bytes`, as far as that can be changed from outside."""
        # Advice is made of estimates, so it imports this module's neighbours.
        from tensorboard_plugin_memest.advise.advice import advice_for
        from tensorboard_plugin_memest.advise.loop import LoopWorkshop

        return advice_for(estimate, limit_bytes, LoopWorkshop(self, estimate), seconds)


@contextlib.contextmanager
def other_optimizers(found: Sequence[Any], make: Callable[[], Any] | None) -> Iterator[None]:
    """Inside, each optimizer of `found` is what `make` gives, wherever it is held; on leaving, as it was."""
    before = [(one, type(one), dict(vars(one))) for one in found]
    for one, _, _ in before:
        if make is not None:
            _become(one, type(made := make()), dict(vars(made)))
    try:
        yield
    finally:
        for one, kind, state in before:
            _become(one, kind, state)


def _become(thing: Any, kind: type, state: dict[str, Any]) -> None:
    thing.__class__ = kind
    vars(thing).clear()
    vars(thing).update(state)
