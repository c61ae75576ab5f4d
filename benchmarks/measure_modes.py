"""Runs a configuration in one mode, from building to prediction, and tells what its allocator counted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf

from benchmarks.configuration import Configuration
from benchmarks.data import batch_of, dataset_of, inputs_of
from benchmarks.measure import DEVICE, statistics
from benchmarks.models import CONFIGURATIONS

GRAPH, XLA, EAGER = "graph", "xla", "eager"
MODES = (GRAPH, XLA, EAGER)
PHASES = ("build", "first_step", "step", "evaluate", "predict")

STEPS = 6
# How often a model is evaluated and asked for predictions, the first time, which traces, included.
PASSES = 3
BATCHES_A_PASS = 3


def validation_batch_size(configuration: Configuration) -> int:
    """Examples a step of evaluation: others than in training, as people choose them."""
    return 2 * configuration.batch_size


def predict_batch_size(configuration: Configuration) -> int:
    """Examples a step of prediction."""
    return configuration.batch_size + 3


def phases_of(configuration: Configuration) -> tuple[str, ...]:
    """The phases that a configuration's model passes: one with a training step of its own has no other."""
    return PHASES[:3] if configuration.targets == () else PHASES


def in_mode(model: keras.Model, mode: str) -> keras.Model:
    """`model`, to run in another mode than the one it was compiled for."""
    model.jit_compile, model.run_eagerly = mode == XLA, mode == EAGER
    if model.jit_compile != (mode == XLA):
        raise ValueError(f"{model.name} does not support XLA.")
    return model


def measure_mode(name: str, mode: str) -> dict[str, list[int]]:
    """Peaks in bytes, a list for each phase; call it in a fresh process.

    Steps of training are taken one by one; `evaluate` and `predict` are the model's own methods, over several batches.
    A phase that the model cannot do, for want of a step of that kind, is left out.
    """
    configuration = CONFIGURATIONS[name]
    tf.config.experimental.reset_memory_stats(DEVICE)
    model = in_mode(configuration.build(), mode)
    peaks = {"build": [statistics()["peak"]]}
    fed = Fed()
    batches = iter(fed.dataset(batch_of(configuration, model)))
    model.make_train_function()
    steps = [fed.peak_of(lambda: model.train_function(batches)) for _ in range(STEPS)]
    peaks["first_step"], peaks["step"] = steps[:1], steps[1:]
    for phase, batch_size in (
        ("evaluate", validation_batch_size(configuration)),
        ("predict", predict_batch_size(configuration)),
    ):
        if phase in phases_of(configuration):
            batch = batch_of(replace(configuration, batch_size=batch_size), model)
            dataset = fed.dataset(batch if phase == "evaluate" else inputs_of(configuration, batch))
            del batch
            run = functools.partial(getattr(model, phase), dataset, steps=BATCHES_A_PASS, verbose=0)
            peaks[phase] = [fed.peak_of(run) for _ in range(PASSES)]
    return peaks


class Fed:
    """Data that lies in the allocator beside what is measured, and is not counted."""

    def __init__(self) -> None:
        self._bytes = 0
        self._kept: list[Any] = []

    def dataset(self, batch: Any) -> tf.data.Dataset:
        """Copies of `batch` without an end; the one that they are made from stays."""
        made = dataset_of(batch)
        self._kept.append(made)
        self._bytes += sum(tensor.shape.num_elements() * tensor.dtype.size for tensor in keras.tree.flatten(batch))
        return made

    def peak_of(self, run: Callable[[], Any]) -> int:
        """The peak while `run` runs."""
        tf.config.experimental.reset_memory_stats(DEVICE)
        run()
        return statistics()["peak"] - self._bytes
