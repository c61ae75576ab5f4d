"""A measurement and an estimate to a row of errors."""

from __future__ import annotations

from typing import Any

from benchmarks.errors import distance, spread

PHASES = ("build", "first_step", "step")


def row_of(record: dict[str, Any], estimate: dict[str, Any]) -> dict[str, Any]:
    """The errors of one configuration under one thread setting.

    Args:
        record: of the store.
        estimate: as `estimate.estimate` returns it.
    """
    measured, bare = peaks_of(record), _bare_of(record)
    row: dict[str, Any] = {key: record[key] for key in ("name", "family", "threads")}
    row["seconds"] = estimate["seconds"]
    row["allocated"] = estimate["allocated"]
    row["phases"] = {}
    for phase, predicted in estimate["phases"].items():
        peaks = measured[phase]
        low, high = predicted["range"]
        found = {
            "predicted": predicted["peak"],
            "range": [low, high],
            "measured": [min(peaks), max(peaks)],
            "error": distance(predicted["peak"], peaks),
            "error_to_highest": predicted["peak"] / max(peaks) - 1,
            "spread": spread(peaks),
            "held": [low <= peak <= high for peak in peaks],
            "low_error": low / min(peaks) - 1,
            "high_error": high / max(peaks) - 1,
        }
        if bare[phase]:
            found["predicted_without_scratch"] = predicted["without_scratch"]
            found["measured_without_scratch"] = [min(bare[phase]), max(bare[phase])]
            found["error_without_scratch"] = distance(predicted["without_scratch"], bare[phase])
        row["phases"][phase] = found
    for baseline in ("grappler", "formula"):
        said = (record["baselines"] or {}).get(baseline)
        if said is not None:
            row[baseline] = distance(said, measured["step"])
            row[f"{baseline}_without_scratch"] = distance(said, bare["step"])
    return row


def peaks_of(record: dict[str, Any]) -> dict[str, list[int]]:
    """The measured peaks of each phase, over all processes."""
    processes = record["processes"]
    return {
        "build": [process["build"] for process in processes],
        "first_step": [process["steps"][0] for process in processes],
        "step": [peak for process in processes for peak in process["steps"][1:]],
    }


def _bare_of(record: dict[str, Any]) -> dict[str, list[int]]:
    """The measured peaks without kernel scratch; initializers have none."""
    processes = record["processes"]
    return {
        "build": [process["build"] for process in processes],
        "first_step": [process["first_profiled"][1] for process in processes if process["first_profiled"]],
        "step": [bare for process in processes for _, bare in process["profiled"]],
    }
