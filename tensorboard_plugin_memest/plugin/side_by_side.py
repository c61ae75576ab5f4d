"""Several runs side by side, each figure held against that of the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorboard_plugin_memest.memory.category import Category

Plain = dict[str, Any]

_FACTS = ("model_name", "parameters", "trainable_parameters", "optimizer", "batch_size", "mode", "device", "pool")


def side_by_side(overviews: Sequence[Plain]) -> Plain:
    """The runs of `overviews` (answers of the route of that name), the first of which the others are held against.

    A figure that a run does not have is None, and so is its difference, which is that run's figure less the first
    run's. Layers are joined by path, those with the largest differences first.
    """
    estimates = [overview["estimate"] for overview in overviews]
    phases = _union({phase["name"]: phase["peak_bytes"] for phase in _of(one, "phases", [])} for one in estimates)
    categories = [one["total"]["bytes_per_category"] if one else {} for one in estimates]
    layers = [{row["path"]: row["bytes_at_peak"] for row in _of(one, "layers", [])} for one in estimates]
    return {
        "runs": [
            {
                "name": overview["name"],
                "peak_bytes": _of(estimate, "peak_bytes", None),
                "bytes_per_category": categories[n] if estimate else None,
                "measured_peak_bytes": overview["measured"]["peak_bytes"],
                "verdict": overview["verdict"],
                "crash": overview["crash"] and overview["crash"]["sentence"],
            }
            for n, (overview, estimate) in enumerate(zip(overviews, estimates, strict=True))
        ],
        "facts": _facts(estimates),
        "peaks": [
            _row("predicted", [_of(one, "peak_bytes", None) for one in estimates]),
            _row("measured", [overview["measured"]["peak_bytes"] for overview in overviews]),
            _row("resident", [_of(one, "resident_bytes", None) for one in estimates]),
        ],
        "phases": [
            _row(
                name,
                [
                    next((p["peak_bytes"] for p in _of(one, "phases", []) if p["name"] == name), None)
                    for one in estimates
                ],
            )
            for name in phases
        ],
        "categories": [
            _row(
                category.value,
                [held.get(category.value, 0) if one else None for one, held in zip(estimates, categories, strict=True)],
            )
            for category in Category
            if any(held.get(category.value) for held in categories)
        ],
        "layers": sorted(
            (_row(path, [held.get(path) for held in layers]) for path in _union(layers)),
            key=lambda row: -_largest_change(row["values"]),
        ),
    }


def _facts(estimates: Sequence[Plain | None]) -> list[Plain]:
    """What was estimated: a row for each fact, in words or whole numbers, and whether the runs differ in it."""
    subjects = [_of(estimate, "subject", {}) for estimate in estimates]
    versions = [subject.get("versions", {}) for subject in subjects]
    rows = [(name, [subject.get(name) for subject in subjects]) for name in _FACTS]
    rows += [(package, [version.get(package) for version in versions]) for package in _union(versions)]
    return [{"name": name, "values": values, "differs": len(set(values)) > 1} for name, values in rows]


def _row(name: str, values: Sequence[int | None]) -> Plain:
    first = values[0]
    return {
        "name": name,
        "values": list(values),
        "differences": [None if first is None or value is None else value - first for value in values],
    }


def _largest_change(values: Sequence[int | None]) -> int:
    """A layer that a run does not have holds nothing there."""
    first = values[0] or 0
    return max(abs((value or 0) - first) for value in values)


def _union(named: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names in the order in which they first come."""
    return list(dict.fromkeys(name for one in named for name in one))


def _of(plain: Plain | None, name: str, otherwise: Any) -> Any:
    return otherwise if plain is None else plain[name]
