"""A training step outside Keras to an Estimate, with nothing of it allocated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.python.eager import context as tf_context

from tensorboard_plugin_memest.estimation.constants import apart_from_the_device
from tensorboard_plugin_memest.estimation.device import training_device
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.model import assemble, require_graph_mode
from tensorboard_plugin_memest.estimation.plain_python import plain_python
from tensorboard_plugin_memest.estimation.step_function import training_of_step
from tensorboard_plugin_memest.estimation.subject import require_tensorflow
from tensorboard_plugin_memest.estimation.tf_functions import untouched_functions
from tensorboard_plugin_memest.memory.estimate import Estimate


@plain_python
def estimate_function(
    step_function: Callable[..., Any],
    *specs: Any,
    batch_size: int | None = None,
    jit_compile: bool | None = None,
    device: str | None = None,
    **named_specs: Any,
) -> Estimate:
    """Predicts the memory of a training loop's step, such as one with `tf.GradientTape`, without running it.

    The function is traced as `tf.function` does it, so Python code in it runs once; it is optimized as TensorFlow
    would, and played op by op through a replay of TensorFlow's allocator. What it uses is found in its closure, in
    globals and in `self`: any number of models, optimizers, metrics, modules and plain variables. They are left as they
    were; variables that its first call creates, such as an optimizer's slots, get no memory.

    Args:
        step_function: a `tf.function`; or a Python function, which is estimated as if it were one.
        specs: its arguments: for a tensor a `tf.TensorSpec` (or a tensor or array of that shape) or a structure of
            them, for an iterator or dataset that or its spec; anything else is passed on as it is. May be left away
            where the function has an `input_signature`.
        batch_size: what a first dimension of None is taken for. None takes it from the specs' first dimension.
        jit_compile: False for graph mode. None takes what the function was made with.
        device: `"CPU"` or `"GPU"`; None for the device this process would train on.
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
    require_graph_mode(jit_compile)
    apart_from_the_device()
    chosen = training_device(device)
    # Whatever graph or function the caller is building, nothing goes into it.
    with tf_context.eager_mode(), untouched_globals(), untouched_functions():
        training = training_of_step(step_function, specs, named_specs, batch_size)
        try:
            notes = []
            if training.jit_compile and jit_compile is None:
                notes.append(
                    f"{training.model_name} is compiled with XLA (jit_compile=True), but this estimate is for graph "
                    "mode, jit_compile=False."
                )
            return assemble(training, chosen, notes)
        finally:
            training.discard()
