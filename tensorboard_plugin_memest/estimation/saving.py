"""What saving a model, or logging its histograms, takes of the host's memory.

Measured as the rise of the resident set over models of one and of many layers (`benchmarks/saving.py`), and array by
array. A `.keras` file is put together in memory before it is written. The array that goes into it has a copy beside it,
one of the optimizer's two, because the optimizer holds what it hands over; so has one that malloc keeps for the next.
Before, each array has two copies for a moment. `.weights.h5` goes to disk array by array; a legacy `.h5` file has the
arrays of a whole layer, or of the optimizer, in a list, and a copy of the one at work. TensorFlow writes a checkpoint
through a buffer, straight from the variables where these lie in the host's memory; from a GPU all of them are copied
first. TensorBoard's histograms make a one-hot tensor of 30 columns in float64 from every weight.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.computed import Computed
from tensorboard_plugin_memest.estimation.device import GPU
from tensorboard_plugin_memest.estimation.served import Served
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.units import format_bytes

# `buckets` of tensorboard/plugins/histogram/summary_v2.py: 30 buckets, a float64 for each of an element.
BYTES_OF_ONE_HOT = 30 * 8

# The write buffer of tensorflow/core/util/tensor_bundle/tensor_bundle.cc, and what the first save of a process brings
# in besides: 1.7 MB of TensorFlow's code, and up to 1.5 MB of books; with four models it took 10.1 to 11.6 MB in all.
CHECKPOINT_BUFFER = 8 * 2**20
FIRST_CHECKPOINT = 2_500_000

# What the first file in HDF5's format brings in: 5.3 to 6.9 MB in 17 of 20 measurements.
FIRST_FILE = 6_000_000

# What an export takes for each op that it traces, each weight and each function of a loop. Fitted to 15 models of 9 to
# 1831 ops (dense, convolutional, recurrent, attention; ResNet50 took 149 MB, MobileNetV2 115); 14 are within 5.2 %.
EXPORTED_OP, EXPORTED_WEIGHT, EXPORTED_FUNCTION = 29_000, 266_000, 660_000

# Freed arrays of no more than this glibc's malloc keeps (DEFAULT_MMAP_THRESHOLD_MAX); larger ones are given back. Which
# have pages of their own, and how much of what is free stays, follows the largest of them that was freed so far.
KEPT_BY_MALLOC = 32 * 2**20
_FIRST_THRESHOLD = 128 * 2**10

# How the names of legacy files end.
_LEGACY = (".h5", ".hdf5")

# What can be passed as `saves`, for those who pass something else.
_WAYS = (
    "file names as model.save and model.save_weights take them ('a.keras', 'a.weights.h5', 'a.h5'), a directory as "
    "model.export takes it, a tf.train.Checkpoint or a tf.train.CheckpointManager"
)


@dataclass(frozen=True)
class HostCost:
    """What one way to save takes of the host's memory at a time.

    Attributes:
        bytes: how much.
        what: in words, what for.
        reads: whether variables are read for it, as Keras does; TensorFlow writes them from where they are.
    """

    bytes: int
    what: str
    reads: bool = True


@dataclass(frozen=True)
class Saving:
    """What a run saves and logs.

    Attributes:
        callbacks: the callbacks of `fit`.
        saves: what it saves besides: paths, `tf.train.Checkpoint`s and `tf.train.CheckpointManager`s.
    """

    callbacks: Sequence[keras.callbacks.Callback] = ()
    saves: Sequence[Any] = ()

    @property
    def exports(self) -> bool:
        """Whether the run exports the model."""
        return any(isinstance(one, (str, os.PathLike)) and _is_export(os.fspath(one)) for one in self.saves)

    @property
    def stores(self) -> bool:
        """Whether layers are asked for what is to be stored, as in all of Keras' files but the legacy ones."""
        paths = [(os.fspath(one), False) for one in self.saves if isinstance(one, (str, os.PathLike))]
        checkpoints = [one for one in self.callbacks if isinstance(one, keras.callbacks.ModelCheckpoint)]
        paths += [(str(one.filepath), one.save_weights_only) for one in checkpoints]
        return any(isinstance(one, keras.callbacks.BackupAndRestore) for one in self.callbacks) or any(
            not _is_export(path) and (_is_array_by_array(path, only) or not path.endswith(_LEGACY))
            for path, only in paths
        )


NO_SAVING = Saving()


def checked_saving(callbacks: Any, saves: Any) -> Saving:
    """The `callbacks` and `saves` of `estimate`.

    Raises:
        ValueError: they are no Keras callbacks, or nothing that a model could be saved to.
    """
    called = _as_list(callbacks)
    for one in called:
        if not isinstance(one, keras.callbacks.Callback):
            raise UsageError(f"callbacks= takes the Keras callbacks that fit gets, in a list, not {one!r}.")
    saved = _as_list(saves)
    for one in saved:
        if not isinstance(one, (str, os.PathLike, tf.train.Checkpoint, tf.train.CheckpointManager)) or one == "":
            raise UsageError(f"saves= takes {_WAYS}, or a list of them, not {one!r}.")
    return Saving(called, saved)


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def host_costs(
    saving: Saving,
    variables: Sequence[Variable],
    device: str,
    served: Served | None,
    computed: Sequence[Computed] = (),
) -> list[HostCost]:
    """What each way to save or log weights takes, one after another.

    Args:
        saving: what a run saves.
        variables: all variables of the run, in the order in which they came to be.
        device: kind of the device that they are on.
        served: what an export traces; None where there is none.
        computed: of layers that store more than variables what they store.
    """
    stored = _Stored(variables, computed)
    costs = []
    for one in saving.callbacks:
        if isinstance(one, keras.callbacks.ModelCheckpoint):
            costs.append(_cost_of_file(str(one.filepath), stored, weights_only=one.save_weights_only))
        elif isinstance(one, keras.callbacks.BackupAndRestore):
            costs.append(_cost_of_file("backup.weights.h5", stored))
        elif isinstance(one, keras.callbacks.TensorBoard) and one.histogram_freq:
            costs.append(_cost_of_histograms(variables))
    for one in saving.saves:
        if isinstance(one, (str, os.PathLike)):
            path = os.fspath(one)
            if _is_export(path):
                assert served is not None
                costs.append(_cost_of_export(path, stored, device, served))
            else:
                costs.append(_cost_of_file(path, stored))
        else:
            costs.append(_cost_of_checkpoint(f"A {type(one).__name__}", [*stored.weights, *stored.slots], device))
    return costs


class _Stored:
    """Bytes of what is saved.

    Attributes:
        weights: of each weight.
        slots: of each variable of the optimizer.
        layers: of the weights of each layer.
        given: of what layers give when they are asked, and whether it is a variable.
    """

    def __init__(self, variables: Sequence[Variable], computed: Sequence[Computed]) -> None:
        weights = [one for one in variables if one.category is Category.WEIGHTS]
        self.weights = [one.bytes for one in weights]
        self.slots = [one.bytes for one in variables if one.category is Category.OPTIMIZER_SLOTS]
        self.layers: dict[str, list[int]] = {}
        self.given: list[tuple[int, bool]] = []
        others = {one.layer: one.stored for one in computed}
        for one in weights:
            if one.layer not in others:
                self.given.append((one.bytes, True))
            elif one.layer not in self.layers:
                self.given += others[one.layer]
            self.layers.setdefault(one.layer, []).append(one.bytes)


def _is_export(path: str) -> bool:
    return not path.endswith((*_LEGACY, ".keras"))


def _cost_of_export(path: str, stored: _Stored, device: str, served: Served) -> HostCost:
    traced = served.ops * EXPORTED_OP + served.functions * EXPORTED_FUNCTION + len(stored.weights) * EXPORTED_WEIGHT
    return _cost_of_checkpoint(f"Exporting to {path!r}", stored.weights, device, traced)


def _cost_of_file(path: str, stored: _Stored, *, weights_only: bool = False) -> HostCost:
    arrays = [*stored.given, *((size, True) for size in stored.slots)]
    if _is_array_by_array(path, weights_only):
        most = _one_after_another(arrays)
        of = "two copies of the largest variable, or one of what a layer computes, and what malloc keeps of others"
    elif path.endswith(_LEGACY):
        lists = [*stored.layers.values(), stored.slots]
        most = max((sum(arrays) + max(arrays) for arrays in lists if arrays), default=0)
        of = "all arrays of a layer, or of the optimizer, and another copy of one"
    else:
        most = written = 0
        for number, (size, _) in enumerate(arrays):
            written += size
            copies = 2 if number >= len(stored.given) or size <= KEPT_BY_MALLOC else 1
            most = max(most, written + copies * size)
        of = "the file, weights and optimizer variables, and one or two more copies of one of them"
    most += FIRST_FILE
    what = f"Saving {path!r} takes {format_bytes(most)} of the host's memory: {of}, and what the first file brings in."
    return HostCost(most, what)


def _is_array_by_array(path: str, weights_only: bool) -> bool:
    return path.endswith(".weights.h5") or weights_only


def _one_after_another(arrays: Sequence[tuple[int, bool]]) -> int:
    """Bytes of arrays of which each is freed before the next, variables in two copies, with what malloc keeps."""
    threshold, kept, most = _FIRST_THRESHOLD, 0, 0
    for size, is_variable in arrays:
        together = (1 + is_variable) * size
        if size <= threshold:
            kept = max(kept, together)
        most = max(most, kept + (together if size > threshold else 0))
        if threshold < size <= KEPT_BY_MALLOC:
            threshold = size
        if kept >= 2 * threshold:
            kept = 0
    return most


def _cost_of_checkpoint(what: str, saved: Sequence[int], device: str, traced: int = 0) -> HostCost:
    own = CHECKPOINT_BUFFER + FIRST_CHECKPOINT + traced
    if device == GPU:
        most = sum(saved) + own
        return HostCost(
            most,
            f"{what} takes {format_bytes(most)} of the host's memory: TensorFlow copies all variables from the GPU "
            "before it writes the first (read in its sources, not measured).",
            reads=False,
        )
    besides = ", what the first save brings in, and what is traced" if traced else " and what the first save brings in"
    return HostCost(
        own,
        f"{what} takes {format_bytes(own)} of the host's memory: TensorFlow's write buffer{besides}. The variables are "
        "written from where they are, however large.",
        reads=False,
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
