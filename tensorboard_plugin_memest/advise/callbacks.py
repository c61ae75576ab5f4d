"""Changes to the callbacks of `fit`, which take the host's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras

from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.advise.proposal import Proposal


def callback_changes(callbacks: Sequence[Any]) -> Iterator[Proposal]:
    """What can be changed about callbacks that save weights or log histograms."""
    whole = [one for one in callbacks if isinstance(one, keras.callbacks.ModelCheckpoint) and not _weights_only(one)]
    if whole:
        yield Proposal(
            "checkpoint_format",
            "checkpoint",
            "Checkpoints of weights alone, in .weights.h5",
            Change(callbacks=_with_weights_only),
            "The optimizer's state is not in the file: use BackupAndRestore to go on after an interruption.",
            'keras.callbacks.ModelCheckpoint("model.weights.h5", save_weights_only=True)',
            0,
        )
    boards = [one for one in callbacks if isinstance(one, keras.callbacks.TensorBoard) and one.histogram_freq]
    if boards:
        yield Proposal(
            "histogram_freq",
            "histograms",
            "No histograms of weights",
            Change(callbacks=_without_histograms),
            "TensorBoard's Histograms stay empty; tf.summary.histogram of a sample of a weight costs little.",
            f"keras.callbacks.TensorBoard({boards[0].log_dir!r}, histogram_freq=0)",
            0,
        )


def _weights_only(callback: Any) -> bool:
    return bool(callback.save_weights_only) or str(callback.filepath).endswith(".weights.h5")


def _with_weights_only(callbacks: Sequence[Any]) -> list[Any]:
    return [
        keras.callbacks.ModelCheckpoint("model.weights.h5", save_weights_only=True)
        if isinstance(one, keras.callbacks.ModelCheckpoint) and not _weights_only(one)
        else one
        for one in callbacks
    ]


def _without_histograms(callbacks: Sequence[Any]) -> list[Any]:
    return [one for one in callbacks if not (isinstance(one, keras.callbacks.TensorBoard) and one.histogram_freq)]
