"""The functions that training scripts call: estimates, and estimates that are logged."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras

from tensorboard_plugin_memest.estimation.host.arrays import WrongDataError
from tensorboard_plugin_memest.estimation.host.model import estimate_dataset
from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.plain_python import plain_python
from tensorboard_plugin_memest.estimation.subject import NoModelError, require_subject
from tensorboard_plugin_memest.log.given_limit import keep_limit
from tensorboard_plugin_memest.log.logdir import resolve_logdir
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import WHAT_IF_SECONDS, Estimate
from tensorboard_plugin_memest.memory.host import HostEstimate
from tensorboard_plugin_memest.memory.limits import resolve_limit

# The frames of a warning: log_model's own, two of what keeps it plain Python, and the caller's.
_CALLER = 4


@plain_python
def log_model(
    model: keras.Model | Callable[[], keras.Model],
    *,
    batch_size: int | None = None,
    logdir: str | os.PathLike[str] | None = None,
    limit: int | str | None = None,
    advice: bool | float = False,
    what_if: bool | float = False,
    **as_for_estimate: Any,
) -> Estimate | None:
    """Estimates the training memory of `model` and writes it where TensorBoard's Memory tab finds it.

    Nothing of the training changes: the model, its optimizer and all random states stay as they were. If memest itself
    fails, it warns once and returns None, so that the training goes on.

    Args:
        model: a built or compiled Keras model, or a function without arguments that returns one.
        batch_size: examples a step; None for the model's own fixed batch size, else 32, the default of `fit`.
        logdir: the run's log directory; None for that of the current default `tf.summary` writer. Records go to its
            subdirectory `memest`.
        limit: memory of the device to judge by: bytes, text such as `"9.29GiB"`, or a GPU's name; None for the
            device's own. A `MemoryCallback` that is given none takes it over for the same `logdir` in this process.
        advice: whether to find out, too, what to change so that it needs less (`Estimate.advice`), and write that; it
            takes as long as some ten to twenty estimates, or ends after a number of seconds; a limit has to be known.
        what_if: whether to estimate it with other batch sizes, optimizers, precisions and modes, too
            (`Estimate.what_if`), for the tab's panel of choices. True takes a minute, or less for small models; a
            number of seconds ends it earlier or later.
        **as_for_estimate: as for `memest.estimate`.

    Returns:
        The Estimate, in bytes; None if memest failed.

    Raises:
        ValueError: there is neither `logdir` nor a default writer, the model is not built, or an argument is wrong.
        TypeError: `model` is no Keras model, or an argument is unknown.
    """
    inspect.signature(estimate).bind(model, batch_size=batch_size, **as_for_estimate)
    directory = resolve_logdir(logdir)
    limit_bytes = None if limit is None else resolve_limit(limit).bytes
    require_subject(model, "The first argument of log_model")
    for name, wanted in (("advice", advice), ("what_if", what_if)):
        if not isinstance(wanted, (bool, int, float)) or wanted < 0:
            raise UsageError(f"{name}={wanted!r}: pass True, False, or the seconds that it may take.")
    try:
        made = estimate(model, batch_size=batch_size, **as_for_estimate)
        if limit_bytes is not None:
            made = replace(made, limit_bytes=limit_bytes)
        with RunWriter(directory) as writer:
            writer.write_estimate(made)
            keep_limit(directory, limit_bytes)
            if advice:
                writer.write_advice(made.advice(seconds=None if advice is True else advice))
            if what_if:
                writer.write_what_if(made.what_if(WHAT_IF_SECONDS if what_if is True else what_if))
    except (UsageError, NoModelError):
        raise
    except Exception as error:
        warnings.warn(
            f"memest could not log this model ({type(error).__name__}: {error}); the training goes on without it.",
            RuntimeWarning,
            stacklevel=_CALLER,
        )
        return None
    return made


@plain_python
def log_dataset(
    dataset: Any, *, logdir: str | os.PathLike[str] | None = None, **as_for_estimate_dataset: Any
) -> HostEstimate | None:
    """Estimates the host memory of a data pipeline and writes it where TensorBoard's Memory tab finds it.

    Nothing of the pipeline runs. If memest itself fails, it warns once and returns None, so that the training goes on.

    Args:
        dataset: a `tf.data.Dataset`, or what else `memest.estimate_dataset` takes.
        logdir: the run's log directory; None for that of the current default `tf.summary` writer. Records go to its
            subdirectory `memest`.
        **as_for_estimate_dataset: as for `memest.estimate_dataset`.

    Returns:
        The HostEstimate, in bytes; None if memest failed.

    Raises:
        ValueError: there is neither `logdir` nor a default writer, or an argument is out of range.
        TypeError: `dataset` is nothing that `fit` takes, or an argument is unknown.
    """
    inspect.signature(estimate_dataset).bind(dataset, **as_for_estimate_dataset)
    directory = resolve_logdir(logdir)
    try:
        made = estimate_dataset(dataset, **as_for_estimate_dataset)
        with RunWriter(directory) as writer:
            writer.write_host(made)
    except (UsageError, WrongDataError):
        raise
    except Exception as error:
        warnings.warn(
            f"memest could not log this data pipeline ({type(error).__name__}: {error}); "
            "the training goes on without it.",
            RuntimeWarning,
            stacklevel=_CALLER,
        )
        return None
    return made
