"""What callbacks that save or log weights take of the host's memory.

Measured as the rise of the resident set over models of one and of many layers. A `.keras` file is put together in
memory before it is written, weights and optimizer variables alike, and each array in turn has two copies; `.weights.h5`
goes to disk array by array. TensorBoard's histograms make a one-hot tensor of 30 columns in float64 from every weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import keras

from tensorboard_plugin_memest.estimation.allocator import rounded
from tensorboard_plugin_memest.estimation.tag import variable_tag
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.memory.allocations import Allocations
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.timeline import Timeline
from tensorboard_plugin_memest.memory.units import format_bytes

# `buckets` of tensorboard/plugins/histogram/summary_v2.py: 30 buckets, a float64 for each of an element.
BYTES_OF_ONE_HOT = 30 * 8

_NAME = "checkpoint"


@dataclass(frozen=True)
class HostCost:
    """What one callback takes of the host's memory at a time: bytes, and in words what for."""

    bytes: int
    what: str


def checked_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    """The `callbacks` of `estimate` as a list.

    Raises:
        ValueError: they are no Keras callbacks.
    """
    found = list(callbacks) if isinstance(callbacks, (list, tuple)) else [] if callbacks is None else [callbacks]
    for one in found:
        if not isinstance(one, keras.callbacks.Callback):
            raise UsageError(f"callbacks= takes the Keras callbacks that fit gets, in a list, not {one!r}.")
    return found


def host_costs(callbacks: Iterable[keras.callbacks.Callback], variables: Sequence[Variable]) -> list[HostCost]:
    """What those of `callbacks` that save or log weights take, one after another."""
    weights = [one.bytes for one in variables if one.category is Category.WEIGHTS]
    saved = weights + [one.bytes for one in variables if one.category is Category.OPTIMIZER_SLOTS]
    costs = []
    for one in callbacks:
        if isinstance(one, keras.callbacks.ModelCheckpoint):
            costs.append(_cost_of_file(str(one.filepath), one.save_weights_only, weights, saved))
        elif isinstance(one, keras.callbacks.BackupAndRestore):
            costs.append(_cost_of_file("backup.weights.h5", True, weights, saved))
        elif isinstance(one, keras.callbacks.TensorBoard) and one.histogram_freq:
            costs.append(_cost_of_histograms(variables))
    return costs


def checkpoint_phase(costs: Sequence[HostCost], variables: Sequence[Variable]) -> Phase:
    """Between two steps the device holds the variables and nothing else, while the host saves them."""
    items = [variable_tag(one).item(one.bytes, rounded(one.bytes)) for one in variables]
    held = sum(item.bytes for item in items)
    return Phase(
        name=_NAME,
        peak_bytes=held,
        requested_peak_bytes=sum(item.requested_bytes for item in items),
        peak_without_scratch_bytes=held,
        peak_range=(held, held),
        peak_op="(between steps)",
        live_at_peak=tuple(sorted(items, key=lambda item: (-item.bytes, item.name))),
        timeline=Timeline("op", [0], [held], [0], ["(between steps)"]),
        host_peak_bytes=max(cost.bytes for cost in costs),
        allocations=Allocations.of((item, 0, 1) for item in items),
    )


def _cost_of_file(path: str, weights_only: bool, weights: Sequence[int], saved: Sequence[int]) -> HostCost:
    if weights_only or path.endswith(".weights.h5"):
        most = 2 * max(weights, default=0)
        return HostCost(
            most, f"Saving {path!r} takes {format_bytes(most)} of the host's memory: two copies of the largest weight."
        )
    most = sum(saved) + 2 * max(saved, default=0)
    return HostCost(
        most,
        f"Saving {path!r} takes {format_bytes(most)} of the host's memory: the whole file, weights and optimizer "
        "variables, and two more copies of the largest.",
    )


def _cost_of_histograms(variables: Sequence[Variable]) -> HostCost:
    trained = [one for one in variables if one.category is Category.WEIGHTS]
    largest = max(trained, key=lambda one: one.bytes, default=None)
    elements = 0
    if largest is not None:
        elements = 1
        for size in largest.shape:
            elements *= size
    most = elements * BYTES_OF_ONE_HOT
    name = largest.name if largest is not None else "no weight"
    return HostCost(
        most,
        f"TensorBoard(histogram_freq=...) makes a tensor of {most:,} bytes ({format_bytes(most)}) of the host's memory "
        f"for {name}, [{elements}, 30] in float64, and about a fifth more beside it: {BYTES_OF_ONE_HOT} bytes for each "
        "element of the largest weight.",
    )
