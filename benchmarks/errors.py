"""How far a number is from what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def distance(predicted: float, measured: Sequence[float]) -> float:
    """How far `predicted` lies outside the range of `measured`, relative to the nearer end; negative below it."""
    low, high = min(measured), max(measured)
    if predicted < low:
        return predicted / low - 1
    return predicted / high - 1 if predicted > high else 0.0


def spread(measured: Sequence[float]) -> float:
    """How wide the range of `measured` is, relative to its lower end."""
    return max(measured) / min(measured) - 1


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that at least `share` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclass(frozen=True)
class Summary:
    """Median, 95th percentile and worst of the sizes of some errors, and how many there are."""

    median: float
    p95: float
    worst: float
    count: int


def summary(errors: Sequence[float]) -> Summary:
    """A summary of `errors`, their signs left out."""
    sizes = [abs(error) for error in errors]
    return Summary(percentile(sizes, 0.5), percentile(sizes, 0.95), max(sizes), len(sizes))
