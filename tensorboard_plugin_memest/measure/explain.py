"""An out-of-memory error to its explanation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType

from tensorboard_plugin_memest.measure import oom_message
from tensorboard_plugin_memest.measure.oom_advice import advice_for
from tensorboard_plugin_memest.measure.oom_message import parse_message
from tensorboard_plugin_memest.measure.whose import find_whose, is_update, phase_of_shape
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate, Phase
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.explanation_text import HOST
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.units import format_bytes
from tensorboard_plugin_memest.memory.verdict import FITS

# Ops that run all of what XLA has compiled.
_COMPILED = re.compile(r"PartitionedCall|[Xx]la_?(?:[Rr]un|[Ll]aunch|[Cc]ompile)")
# Python functions that are on the stack where a variable gets its first value.
_CREATING = {"_initialize", "_initialize_with_initializer", "add_weight", "build"}
_METHODS = {"fit": "step", "train_step": "step", "evaluate": "evaluate", "predict": "predict"}


def explain_oom(error: BaseException | str, estimate: Estimate | None = None) -> Explanation:
    """Explains an out-of-memory error: what was asked for, whose it was, what was there already, and what to change.

    Args:
        error: the exception as it was caught, such as a `tf.errors.ResourceExhaustedError`, or the text that it or a
            log shows: of TensorFlow's allocator, XLA, cuDNN, a GPU's driver, or Python for the host's memory. An error
            of PyTorch's is told to be one.
        estimate: of the training that failed, for its batch size; with it the tensor is matched to a layer and a
            variable, and what was alive and what had been predicted can be told.

    Returns:
        An Explanation; all its sizes are bytes.

    Raises:
        ValueError: the error is about no memory.
        TypeError: `error` is neither an exception nor text, or `estimate` is no Estimate.
    """
    if not isinstance(error, (BaseException, str)):
        raise TypeError(
            "explain_oom takes the exception that was caught, or the text of its message, not "
            f"{error!r} of type {type(error).__name__}."
        )
    if estimate is not None and not isinstance(estimate, Estimate):
        raise TypeError(f"estimate is what memest.estimate returned, or None, not {estimate!r}.")
    explanation = explain(error, estimate)
    if explanation is None:
        shown = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        raise UsageError(
            f"This is no error about memory that memest knows: {shown[:300]!r}. Pass the whole text, with the lines "
            "that say what ran out, such as 'OOM when allocating tensor with shape[...]'. That an 'allocation exceeds "
            "10% of system memory' is a warning: it was granted."
        )
    return explanation


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out."""
    return _failure(error) is not None


def explain(
    error: BaseException | str,
    estimate: Estimate | None = None,
    *,
    phase: str | None = None,
    step: int | None = None,
    in_use_bytes: int | None = None,
    limit_bytes: int | None = None,
    live: tuple[Item, ...] = (),
) -> Explanation | None:
    """The same with what is known from where the error was seen; None if it is about no memory.

    Args:
        error: as for `explain_oom`.
        estimate: as for `explain_oom`.
        phase: which phase failed.
        step: number of the step that failed, 0 for the first of the run.
        in_use_bytes: the most that was in use until then.
        limit_bytes: what the allocator may use.
        live: what was alive, as it was seen.
    """
    failure = _failure(error)
    if failure is None:
        return None
    if failure.source in (HOST, oom_message.PYTORCH):
        # Estimates are of the device, and of TensorFlow.
        estimate = None
    phase = phase or failure.phase or _phase_of_stack(error) or _phase_of_op(failure.op)
    phase = phase or phase_of_shape(failure.shape, estimate)
    whose = find_whose(failure.op, failure.shape, phase, estimate)
    if failure.source == oom_message.XLA and (failure.op is None or _COMPILED.search(failure.op)):
        whose = replace(whose, layer=None, category=Category.TEMPORARIES, role="buffers of the compiled step")
    if failure.source == oom_message.CUDNN:
        whose = replace(whose, category=Category.WORKSPACE, role="the library's own buffers")
    predicted = _phase_of(estimate, phase)
    live = live or failure.live
    explanation = replace(
        failure,
        layer=whose.layer or _of_class(failure.layer, estimate),
        category=whose.category,
        role=whose.role,
        variable=whose.variable,
        phase=phase,
        step=step,
        in_use_bytes=in_use_bytes if in_use_bytes is not None else failure.in_use_bytes,
        limit_bytes=limit_bytes or failure.limit_bytes or (estimate.limit_bytes if estimate else None),
        live=live or (predicted.live_at_peak if predicted else ()),
        live_is_predicted=not live,
        predicted_peak_bytes=predicted.peak_bytes if predicted else None,
    )
    explanation = replace(explanation, expectation=_expectation(explanation, predicted, estimate))
    return replace(explanation, advice=advice_for(explanation, estimate))


def _failure(error: BaseException | str) -> Explanation | None:
    if isinstance(error, str):
        return parse_message(error)
    for one in _chain(error):
        found = parse_message(f"{type(one).__name__}: {one}")
        if found is not None:
            # The class's name is no part of the message.
            return replace(found, message=found.message.removeprefix(f"{type(one).__name__}: "))
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, those that led to it and those it is a group of, the nearest first."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop(0)
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += [*getattr(current, "exceptions", ()), current.__cause__, current.__context__]


def _of_class(name: str | None, estimate: Estimate | None) -> str | None:
    """The path of the only layer of a class; the class itself where no estimate knows it."""
    paths = [info.path for info in estimate.layer_infos if info.class_name == name] if estimate and name else []
    return paths[0] if len(paths) == 1 else name


def _phase_of_stack(error: BaseException | str) -> str | None:
    """Where a caught exception came from, by the functions it passed."""
    if isinstance(error, str):
        return None
    names = list(_functions(error.__traceback__))
    for name in names:
        if name in _METHODS:
            return _METHODS[name]
    return "build" if _CREATING & set(names) else None


def _functions(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_name
        trace = trace.tb_next


def _phase_of_op(op: str | None) -> str | None:
    return "step" if op is not None and is_update(op) else None


def _phase_of(estimate: Estimate | None, phase: str | None) -> Phase | None:
    """The estimate's phase that is meant; where it is unknown, the one that needs most."""
    if estimate is None:
        return None
    if phase is None:
        return max(estimate.phases.values(), key=lambda one: one.peak_bytes)
    # Which training step it was is often unknown; then it is told of the one that peaks higher.
    return estimate.peak_phase if phase == "step" else estimate.phases.get(phase)


def _expectation(explanation: Explanation, phase: Phase | None, estimate: Estimate | None) -> str | None:
    if phase is None or estimate is None:
        return None
    low, high = phase.peak_range
    low_told, high_told = format_bytes(low), format_bytes(high)
    spread = f" ({low_told} to {high_told})" if low_told != high_told else ""
    name = {"build": "building the model", "first_step": "the first step", "step": "a step"}.get(phase.name, phase.name)
    said = f"The estimate had said {format_bytes(phase.peak_bytes)}{spread} for {name}"
    limit = explanation.limit_bytes
    if limit is None:
        return f"{said}; the limit is not known."
    verdict = estimate.fits(limit)
    # That another phase needs even more is worth knowing before this one is mended.
    _, tightest = verdict.tightest
    is_more = format_bytes(tightest.peak_bytes) != format_bytes(phase.peak_bytes)
    more = f" {verdict.sentence}" if is_more and tightest.margin_bytes < 0 else ""
    if verdict.phases[phase.name].outcome == FITS:
        reasons = " ".join(verdict.risks) or (
            "So something that it does not count came on top: kernel workspace, other data in the same memory, or free "
            "memory in pieces that were each too small."
        )
        return f"{said}, which fits into {format_bytes(limit)}. {reasons}{more}"
    short = phase.peak_bytes - limit
    if short > 0:
        return f"{said}: {format_bytes(short)} more than the limit of {format_bytes(limit)}.{more}"
    return f"{said}; whether that fits into {format_bytes(limit)} depends on the order in which the ops run.{more}"
