"""Runs a training in one mode, of a configuration all phases, and tells what its allocator counted."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from benchmarks.configuration import Configuration
from benchmarks.data import drawn_batches
from benchmarks.loops import LOOPS, Step
from benchmarks.measure import DEVICE, statistics
from benchmarks.models import CONFIGURATIONS

GRAPH, XLA, EAGER = "graph", "xla", "eager"
MODES = (GRAPH, XLA, EAGER)
PHASES = ("build", "first_step", "step", "evaluate", "predict", "checkpoint")

STEPS = 6
# The name of the file that a model is saved in.
SAVED = "model.keras"
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


def measure_mode(name: str, mode: str, steps: int) -> dict[str, list[int]]:
    """Peaks in bytes, a list for each phase; call it in a fresh process.

    Steps of training are taken one by one; `evaluate` and `predict` are the model's own methods, over several batches.

    Args:
        name: of a configuration.
        mode: one of MODES.
        steps: steps of training. What comes afterwards depends on whether they are an even number: there are updates
            that give variables other memory, and each other step the same.
    """
    configuration = CONFIGURATIONS[name]
    tf.config.experimental.reset_memory_stats(DEVICE)
    model = in_mode(configuration.build(), mode)
    peaks = {"build": [statistics()["peak"]]}
    batches = iter(drawn_batches(configuration, model))
    model.make_train_function()
    found = [_peak_of(lambda: model.train_function(batches)) for _ in range(steps)]
    peaks["first_step"], peaks["step"] = found[:1], found[1:]
    for phase, batch_size in (
        ("evaluate", validation_batch_size(configuration)),
        ("predict", predict_batch_size(configuration)),
    ):
        if phase in phases_of(configuration):
            dataset = drawn_batches(replace(configuration, batch_size=batch_size), model, targets=phase == "evaluate")
            run = functools.partial(getattr(model, phase), dataset, steps=BATCHES_A_PASS, verbose=0)
            peaks[phase] = [_peak_of(run) for _ in range(PASSES)]
    if "checkpoint" in phases_of(configuration):
        with tempfile.TemporaryDirectory() as folder:
            peaks["checkpoint"] = [_peak_of(lambda: model.save(Path(folder) / SAVED))]
    return peaks


def step_in_mode(step: Step, mode: str) -> Step:
    """A loop's step function, to run in a mode."""
    return step if mode == EAGER else tf.function(step, jit_compile=mode == XLA)


def measure_loop(name: str, mode: str, steps: int) -> dict[str, list[int]]:
    """As `measure_mode`, of a training loop, which holds the batch of the step."""
    loop = LOOPS[name]
    step = step_in_mode(loop.make(), mode)
    found = []
    for _ in range(steps):
        found.append(_peak_of(functools.partial(step, *loop.batch())))
    return {"first_step": found[:1], "step": found[1:]}


def _peak_of(run: Callable[[], Any]) -> int:
    """The peak while `run` runs."""
    tf.config.experimental.reset_memory_stats(DEVICE)
    run()
    return statistics()["peak"]
