"""A profile's file to the memory timeline of each allocator, in full."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tensorboard_plugin_memest.measure.alive import (
    BEFORE,
    Judge,
    Lives,
    alive_at,
    as_held,
    find_lives,
    match_before,
    with_rest,
)
from tensorboard_plugin_memest.measure.attributed import attributed, attributor
from tensorboard_plugin_memest.measure.buffers import buffers_of
from tensorboard_plugin_memest.measure.xplane import Execution, MemoryEvents, Profile, read_xplane
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.layer_comparison import shown_phase
from tensorboard_plugin_memest.memory.measured import MeasuredProfile, device_kind_of
from tensorboard_plugin_memest.memory.op_names import NO_OP, short_name
from tensorboard_plugin_memest.memory.timeline import Span, Timeline


def read_profile(path: str | os.PathLike[str], estimate: Estimate | None = None) -> list[MeasuredProfile]:
    """The memory timeline of every allocator in one `*.xplane.pb`, every event of it.

    Args:
        path: the file, as TensorBoard's and Keras' profilers write it.
        estimate: of the model that was trained; its weights and optimizer slots are looked for, by their sizes, in
            what was allocated before the profile.

    Returns:
        One profile an allocator; none where the file has no memory events, as on a CPU without the BFC allocator.

    Raises:
        ProfileError: the file is no profile or not complete.
        OSError, tf.errors.OpError: the file cannot be opened.
    """
    return measured_profiles(read_xplane(path), estimate)


def measured_profiles(profile: Profile, estimate: Estimate | None = None) -> list[MeasuredProfile]:
    """The same of a file that was decoded already."""
    steps = find_steps(profile)
    return [_measured(profile, events, steps, estimate) for events in profile.memory]


def alive_at_end(profile: Profile, estimate: Estimate | None = None) -> tuple[Item, ...]:
    """What was alive in the CPU's memory when it last gave out any, largest first.

    Where a training ran out of memory, that is just before it did: afterwards memory is only given back.
    """
    chosen = [events for events in profile.memory if "cpu" in events.allocator]
    if not chosen:
        return ()
    events = max(chosen, key=len)
    allocations = np.flatnonzero(events.allocates)
    if not len(allocations):
        return ()
    lives = find_lives(events)
    before_bytes = _before_bytes(events)
    variables = match_before(_variables(estimate, events, lives, before_bytes), before_bytes)
    shapes = {item.shape for item in variables if item.category is Category.WEIGHTS}
    position, steps = int(allocations[-1]), find_steps(profile)
    return alive_at(position, events, lives, steps, profile.backward_ns, variables, shapes)


def find_steps(profile: Profile) -> list[Span]:
    """The training steps in a profile, in nanoseconds since its start; empty where nothing tells them.

    Steps that were marked go first: Keras' TensorBoard callback marks them (with the number of the batch in its
    epoch), and so does MemoryCallback. Otherwise a step is a run of a `tf.function` that has a backward pass in any of
    its runs.
    """
    if profile.steps:
        return [Span(f"step {step.number}", step.start_ns, step.end_ns) for step in _outermost(profile.steps)]
    training = {function.name for function in profile.functions if _has_backward(function, profile)}
    runs = _outermost(function for function in profile.functions if function.name in training)
    return [Span(f"step {number}", run.start_ns, run.end_ns) for number, run in enumerate(runs)]


def _outermost(executions: Iterable[Execution]) -> list[Execution]:
    kept: list[Execution] = []
    for execution in executions:
        if not kept or execution.start_ns >= kept[-1].end_ns:
            kept.append(execution)
    return kept


def _has_backward(function: Execution, profile: Profile) -> bool:
    first, last = np.searchsorted(profile.backward_ns, (function.start_ns, function.end_ns))
    return bool(first < last)


def _variables(estimate: Estimate | None, events: MemoryEvents, lives: Lives, before_bytes: int) -> list[Item]:
    """The variables of an estimate that would be in this allocator's memory."""
    if estimate is None or device_kind_of(events.allocator) != estimate.subject.device:
        return []
    phase = estimate.phases.get("step") or estimate.peak_phase
    variables = [one for one in phase.live_at_peak if one.category in (Category.WEIGHTS, Category.OPTIMIZER_SLOTS)]
    return as_held(variables, events, lives, before_bytes)


def _measured(
    profile: Profile, events: MemoryEvents, steps: Sequence[Span], estimate: Estimate | None
) -> MeasuredProfile:
    lives = find_lives(events)
    before_bytes = _before_bytes(events)
    variables = _variables(estimate, events, lives, before_bytes)
    weight_shapes = {item.shape for item in variables if item.category is Category.WEIGHTS}
    matched = match_before(variables, before_bytes)
    before = with_rest(matched, before_bytes)
    peak = int(np.argmax(events.in_use))
    if before_bytes >= events.in_use[peak]:
        live_at_peak = before
    else:
        live_at_peak = alive_at(peak, events, lives, steps, profile.backward_ns, matched, weight_shapes)
    found = MeasuredProfile(
        allocator=events.allocator,
        host=profile.host,
        started_at=profile.started_at,
        steps=tuple(steps),
        before_bytes=before_bytes,
        before=before,
        timeline=_timeline(events, lives, steps),
        live_at_peak=live_at_peak,
    )
    # Of another device the estimate knows nothing.
    if estimate is not None and found.device_kind != estimate.subject.device:
        estimate = None
    shown = shown_phase(estimate, found) if estimate else None
    phase = shown.name if shown else None
    judge = Judge(events, lives, steps, profile.backward_ns, weight_shapes)
    owner = attributor(phase, estimate)
    allocations = buffers_of(events, lives, steps, profile.backward_ns, judge, matched, before_bytes, variables, owner)
    return replace(found, live_at_peak=attributed(live_at_peak, phase, estimate), allocations=allocations)


def _before_bytes(events: MemoryEvents) -> int:
    """What was in use when the profile started."""
    first = int(events.bytes[0])
    return int(events.in_use[0]) + (-first if events.allocates[0] else first)


def _timeline(events: MemoryEvents, lives: Lives, steps: Sequence[Span]) -> Timeline:
    # A deallocation does not say which op it serves; what it frees does.
    text_of = np.where(events.allocates, events.op, events.op[lives.freed])
    unknown = ~events.allocates & (lives.freed < 0)
    text_of = np.where(unknown, -1, text_of)
    used, op_index = np.unique(text_of, return_inverse=True)
    ops = [BEFORE if index < 0 else short_name(events.texts[index]) or NO_OP for index in used.tolist()]
    return Timeline(
        unit="ns",
        ticks=events.time_ns.tolist(),
        live_bytes=events.in_use.tolist(),
        op_index=op_index.tolist(),
        ops=ops,
        spans=tuple(steps),
    )
