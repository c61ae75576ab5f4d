"""What the routes answer: records to plain data, as `docs/http_api.md` has it. All memory is bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorboard_plugin_memest.log.metadata import profile_id
from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.catalogue import GpuModel
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.comparison import Comparison, compare_devices
from tensorboard_plugin_memest.memory.dominant import Dominant, dominant
from tensorboard_plugin_memest.memory.estimate import Estimate, Layer, LayerInfo, Phase
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.explanation_text import what_changes_save
from tensorboard_plugin_memest.memory.headline import Headline
from tensorboard_plugin_memest.memory.host import HostEstimate
from tensorboard_plugin_memest.memory.item import Item, by_category
from tensorboard_plugin_memest.memory.layer_comparison import ProfileComparison, compare_profile
from tensorboard_plugin_memest.memory.leak import LEAST_ON_DEVICE, LEAST_ON_HOST, Leak, find_leak
from tensorboard_plugin_memest.memory.measured import (
    CALLS,
    EVALUATE,
    HOST,
    HOST_DEVICE,
    PREDICT,
    TRAIN,
    MeasuredPeaks,
    MeasuredProfile,
)
from tensorboard_plugin_memest.memory.verdict import Verdict
from tensorboard_plugin_memest.memory.what_if import WhatIf
from tensorboard_plugin_memest.plugin.layer_tree import groups
from tensorboard_plugin_memest.plugin.reader import RunRecords

Plain = dict[str, Any]

# Of what was alive when a run ran out of memory; it is about what is large.
MOST_LIVE = 20


def headline(run: RunRecords) -> Plain:
    """A run's row in the list of runs."""
    known = Headline.of(run.estimate) if run.estimate else run.headline
    subject = known.subject.to_dict() if known else {}
    return {
        "name": run.name,
        "began": run.began,
        "model": subject.get("model_name"),
        **{name: subject.get(name) for name in ("optimizer", "batch_size", "mode", "device")},
        "peak_bytes": known.peak_bytes if known else None,
        "measured_peak_bytes": compare_devices(known, run.peaks).step_peak_bytes,
        "limit_bytes": known.limit_bytes if known else None,
        "crashed": run.crashed,
        "problems": run.problems,
    }


def gpu_view(gpu: GpuModel) -> Plain:
    """A device of the catalogue."""
    return {
        "name": gpu.name,
        "vendor": gpu.vendor,
        "memory_bytes": gpu.memory_bytes,
        "usable_bytes": gpu.usable_bytes,
        "carries": gpu.carries,
    }


def overview(run: RunRecords, limit: int | str | None) -> Plain:
    """Everything about a run that is small.

    Args:
        limit: what to judge by, as for `Estimate.fits`; None: the limit recorded with the estimate.
    """
    estimate = run.estimate
    if limit is None and estimate is not None:
        limit = estimate.limit_bytes
    compared = compare_profile(estimate, run.profiles)
    return {
        "name": run.name,
        "estimate": estimate_view(estimate, compared) if estimate else None,
        "verdict": verdict_view(estimate.fits(limit)) if estimate and limit else None,
        "advice": run.advice.to_dict() if run.advice else None,
        "measured": measured_view(run, compared),
        "crash": crash_view(run.crash, run.advice) if run.crash else None,
        "problems": run.problems,
    }


def estimate_view(estimate: Estimate, compared: ProfileComparison | None = None) -> Plain:
    """The prediction, without items and timelines; in each layer's row what a profile measured of it."""
    layers = estimate.layers
    rows = _layer_rows(layers, compared)
    return {
        "subject": estimate.subject.to_dict(),
        "peak_bytes": estimate.peak_bytes,
        "peak_phase": estimate.peak_phase.name,
        "resident_bytes": estimate.resident_bytes,
        "phases": [_phase(phase) for phase in estimate.phases.values()],
        "layers": rows,
        "groups": groups(rows),
        "total": {
            "parameters": sum(layer.parameters for layer in layers),
            "bytes_per_category": _categories(by_category(estimate.items)),
            "bytes_at_peak": sum(layer.bytes_at_peak for layer in layers),
            "measured_bytes": compared.profile.peak_bytes if compared else None,
            "difference_bytes": compared.profile.peak_bytes - compared.phase.peak_bytes if compared else None,
        },
        "dominant": [_dominant(entry) for entry in dominant(estimate.items)],
        "assumptions": list(estimate.assumptions),
    }


def verdict_view(verdict: Verdict) -> Plain:
    """Whether it fits, phase by phase."""
    return {
        "limit_bytes": verdict.limit_bytes,
        "limit_name": verdict.limit_name,
        "outcome": verdict.outcome,
        "margin_bytes": verdict.margin_bytes,
        "sentence": verdict.sentence,
        "risks": list(verdict.risks),
        "phases": {
            name: {"peak_bytes": phase.peak_bytes, "margin_bytes": phase.margin_bytes, "outcome": phase.outcome}
            for name, phase in verdict.phases.items()
        },
    }


def measured_view(run: RunRecords, by_layer: ProfileComparison | None = None) -> Plain:
    """What was measured, without the windows and timelines."""
    compared = comparison_of(run)
    return {
        "peak_bytes": compared.step_peak_bytes,
        "total_peak_bytes": compared.measured_peak_bytes,
        "pipeline_bytes": compared.pipeline_bytes,
        "difference": compared.difference,
        "phases": {**compared.phases, **_other_phases(run)},
        "host": _host(run),
        "totals": [totals.to_dict() for totals in run.totals],
        "devices": [{**_device(peaks), "peak_bytes": peaks.peak_bytes, "steps": peaks.steps} for peaks in run.peaks],
        "profiles": [_profile(profile) for profile in run.profiles],
        "compared": compared_view(by_layer) if by_layer else None,
        "notes": [*run.notes, *(leak.sentence(where, what) for what, where, _, leak in _leaks(run))],
    }


def compared_view(compared: ProfileComparison) -> Plain:
    """A profile and a predicted phase, layer by layer."""
    return {
        "profile": profile_id(compared.profile),
        "phase": compared.phase.name,
        "measured_peak_bytes": compared.profile.peak_bytes,
        "predicted_peak_bytes": compared.phase.peak_bytes,
        "layers": [
            {
                "layer": one.layer,
                "predicted_bytes": one.predicted_bytes,
                "measured_bytes": one.measured_bytes,
                "difference_bytes": one.difference_bytes,
            }
            for one in compared.layers
        ],
    }


def _other_phases(run: RunRecords) -> dict[str, int]:
    """The highest peak of evaluation and prediction, on any device, as the allocator counted it."""
    found: dict[str, int] = {}
    for beside in run.beside:
        if beside.what in (EVALUATE, PREDICT) and beside.peaks.peak_bytes is not None:
            found[beside.what] = max(found.get(beside.what, 0), beside.peaks.peak_bytes)
    return found


def _leaks(run: RunRecords) -> list[tuple[str, str, MeasuredPeaks, Leak]]:
    """What keeps growing, once for each device and the host: of what, in words where, its peaks and how."""
    measured = [(TRAIN, peaks) for peaks in run.peaks]
    measured += [
        (what, one.peaks) for what in (HOST, EVALUATE, PREDICT, CALLS) for one in run.beside if one.what == what
    ]
    found: dict[str, tuple[str, str, MeasuredPeaks, Leak]] = {}
    for what, peaks in measured:
        is_host = peaks.device == HOST_DEVICE
        where = _resident_of(peaks.process) if is_host else peaks.label
        leak = find_leak(peaks.windows, LEAST_ON_HOST if is_host else LEAST_ON_DEVICE, what)
        # What grows from step to step does so from call to call, too.
        if leak is not None and where not in found:
            found[where] = what, where, peaks, leak
    return list(found.values())


def _resident_of(process: str | None) -> str:
    return "The process's resident set" if process is None else f"The resident set of {process}"


def _host(run: RunRecords) -> Plain | None:
    """What the process held of the host's memory in the training steps; of several, the one that held most."""
    found = [beside.peaks for beside in run.beside if beside.what == HOST and beside.peaks.windows]
    if not found:
        return None
    peaks = max(found, key=lambda one: one.peak_bytes or 0)
    return {
        "source": peaks.source,
        "peak_bytes": peaks.peak_bytes,
        "first_bytes": peaks.windows[0].start_bytes,
        "last_bytes": peaks.windows[-1].current_bytes,
    }


def comparison_of(run: RunRecords) -> Comparison:
    """The run's estimate against what was measured on devices of its kind; without an estimate on any."""
    return compare_devices(run.estimate, run.peaks)


def crash_view(crash: Explanation, advice: Advice | None = None) -> Plain:
    """Why a run ran out of memory, with the largest of what was alive.

    Args:
        advice: what is known about changes; how to find that out is not told then.
    """
    known = {what_changes_save(crash.limit_bytes)} if advice and crash.limit_bytes is not None else set()
    free = None
    if crash.limit_bytes is not None and crash.in_use_bytes is not None:
        free = max(0, crash.limit_bytes - crash.in_use_bytes)
    return {
        **crash.to_dict(),
        "sentence": crash.sentence,
        "headline": crash.headline,
        "free_bytes": free,
        "advice": [line for line in crash.advice if line not in known],
        "short_bytes": None if free is None or crash.bytes is None else max(0, crash.bytes - free),
        "live": _items(crash.live[:MOST_LIVE]),
        "live_count": len(crash.live),
        "live_bytes": sum(item.bytes for item in crash.live),
        "live_categories": _categories(by_category(crash.live)),
    }


def peaks_view(run: RunRecords) -> Plain:
    """The measured peaks of every step, of what was measured beside, and what of them keeps growing."""
    return {
        "devices": [_windows(peaks) for peaks in run.peaks],
        "beside": [{"what": beside.what, **_windows(beside.peaks)} for beside in run.beside if beside.what != CALLS],
        "leaks": [
            {
                "what": what,
                "device": peaks.label,
                "since_step": leak.since_step,
                "until_step": leak.until_step,
                "since_bytes": peaks.windows[-1].current_bytes - leak.grown_bytes,
                "until_bytes": peaks.windows[-1].current_bytes,
                "grown_bytes": leak.grown_bytes,
                "bytes_per_step": leak.bytes_per_step,
                "sentence": leak.sentence(where, what),
            }
            for what, where, peaks, leak in _leaks(run)
        ],
    }


def _windows(peaks: MeasuredPeaks) -> Plain:
    told = peaks.to_dict()
    return {**_device(peaks), "windows": told["windows"], "epochs": told["epochs"]}


def host_view(estimate: HostEstimate | None) -> Plain:
    """The data pipeline, stage by stage, and what would change it."""
    if estimate is None:
        return {"host": None}
    return {
        "host": {
            "peak_bytes": estimate.peak_bytes,
            "startup_bytes": estimate.startup_bytes,
            "slack_bytes": estimate.slack_bytes,
            "stages": [stage.to_dict() for stage in estimate.stages],
            "levers": [lever.to_dict() for lever in estimate.levers],
            "assumptions": list(estimate.assumptions),
        }
    }


def what_if_view(what_if: WhatIf | None) -> Plain:
    """The training under other choices."""
    if what_if is None:
        return {"what_if": None}
    base = what_if()
    outcomes = [
        {**outcome.to_dict(), "saving_bytes": base.peak_bytes - outcome.peak_bytes} for outcome in what_if.outcomes
    ]
    return {"what_if": {**what_if.to_dict(), "outcomes": outcomes}}


def _phase(phase: Phase) -> Plain:
    return {
        "name": phase.name,
        "peak_bytes": phase.peak_bytes,
        "requested_peak_bytes": phase.requested_peak_bytes,
        "peak_without_scratch_bytes": phase.peak_without_scratch_bytes,
        "peak_range": list(phase.peak_range),
        "peak_op": phase.peak_op,
        "peak_of": _whose_peak(phase),
        "host_peak_bytes": phase.host_peak_bytes,
        "categories": _categories(phase.categories),
    }


def _whose_peak(phase: Phase) -> str | None:
    """What the op at the peak allocates, in words; None where that is not known."""
    whose = phase.owners.get(phase.peak_op)
    return None if whose is None else f"{whose.role} of {whose.variable or whose.layer}"


def _layer_rows(layers: Sequence[Layer], compared: ProfileComparison | None) -> list[Plain]:
    """A row for each layer, then one for each owner that was measured and has nothing at the predicted peak."""
    rows = [
        {
            **layer.info.to_dict(),
            "bytes_per_category": _categories(layer.bytes_per_category),
            "bytes_at_peak": layer.bytes_at_peak,
        }
        for layer in layers
    ]
    differences = {one.layer: one for one in compared.layers} if compared else {}
    known = {row["path"] for row in rows}
    for path in differences:
        if path not in known:
            info = LayerInfo(path, "", None, 0)
            rows.append({**info.to_dict(), "bytes_per_category": {}, "bytes_at_peak": 0})
    for row in rows:
        one = differences.get(row["path"])
        row["measured_bytes"] = (one.measured_bytes if one else 0) if compared else None
        row["difference_bytes"] = (one.difference_bytes if one else 0) if compared else None
    return rows


def _dominant(entry: Dominant) -> Plain:
    return {
        "name": entry.name,
        "layer": entry.layer,
        "shape": None if entry.shape is None else list(entry.shape),
        "bytes": entry.bytes,
        "share": entry.share,
        "sentence": entry.sentence,
        "parts": [
            {
                "role": part.role,
                "category": str(part.category),
                "count": part.count,
                "bytes": part.bytes,
                "requested_bytes": part.requested_bytes,
                "share": part.share,
            }
            for part in entry.parts
        ],
    }


def _device(peaks: MeasuredPeaks) -> Plain:
    return {
        "device": peaks.label,
        "source": peaks.source,
        "before_bytes": peaks.before_bytes,
        "limit_bytes": peaks.limit_bytes,
    }


def _profile(profile: MeasuredProfile) -> Plain:
    return {
        "id": profile_id(profile),
        "allocator": profile.allocator,
        "host": profile.host,
        "started_at": profile.started_at,
        "before_bytes": profile.before_bytes,
        "peak_bytes": profile.peak_bytes,
        "before": _items(profile.before),
    }


def _items(items: Iterable[Item]) -> list[Plain]:
    return [item.to_dict() for item in items]


def _categories(numbers: Mapping[Category, int]) -> dict[str, int]:
    return {str(category): numbers[category] for category in Category if category in numbers}
