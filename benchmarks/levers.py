"""The changes that advice proposes for a configuration: predicted, and really made and trained."""

from __future__ import annotations

import gc
import re
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf

import memest
from benchmarks.estimate import estimate_of
from benchmarks.measure import DEVICE, prepared, statistics
from benchmarks.models import CONFIGURATIONS
from tensorboard_plugin_memest.advise.proposal import Proposal
from tensorboard_plugin_memest.advise.workshop import Workshop
from tensorboard_plugin_memest.estimation.device import training_device
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.mode import XLA
from tensorboard_plugin_memest.estimation.model import Origin

# What it is as it is.
BASE = "as it is"


def predict(name: str, wanted: str = "") -> dict[str, Any]:
    """The peak of the steps as it is and with each change, in bytes; call it in a fresh process.

    Args:
        name: of the configuration.
        wanted: only changes whose name has this regular expression.

    Returns:
        `estimate`, as JSON; `levers`: name to title, peak, and lowest and highest peak, for each change and for BASE.
    """
    made = estimate_of(name)
    workshop = Workshop(made.origin, made)
    found = {BASE: _told(BASE, made)}
    for proposal in workshop.proposals():
        if not re.search(wanted, proposal.name):
            continue
        try:
            found[proposal.name] = _told(proposal.title, workshop.tried(proposal.change))
        except Exception as error:
            print(f"{proposal.title} could not be tried: {error}")
    return {"estimate": made.to_json(), "levers": found}


def _told(title: str, made: Any) -> dict[str, Any]:
    steps = [made.phases[phase] for phase in ("first_step", "step")]
    return {
        "title": title,
        "peak": made.peak_bytes,
        "range": [max(step.peak_range[end] for step in steps) for end in (0, 1)],
    }


def train(name: str, lever: str, estimate: str, steps: int) -> list[int]:
    """Trains a configuration with one change, made as the advice says; call it in a fresh process.

    Args:
        name: of the configuration.
        lever: name of the change; BASE for none.
        estimate: of the configuration, as JSON.
        steps: how many.

    Returns:
        The measured peak of each step in bytes, without what the data holds.
    """
    configuration = CONFIGURATIONS[name]
    build, batch_size = configuration.build, configuration.batch_size
    proposal = None if lever == BASE else _proposal(configuration, lever, memest.Estimate.from_json(estimate))
    if proposal is None:
        model = build()
    else:
        change = proposal.change
        model = change.applied_to(build)()
        batch_size = change.batch_size or batch_size
        if change.optimizer is not None or change.mode is not None:
            optimizer = change.optimizer() if change.optimizer else keras.optimizers.get(type(model.optimizer).__name__)
            model.compile(optimizer, model.loss, jit_compile=change.mode == XLA)
        if isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer):
            # Steps whose scaled gradients are too large for float16 leave the update out, which is most of the peak.
            model.optimizer.initial_scale = 1.0
        # What the model was before is in the way of nobody who writes the change into the script.
        gc.collect()
    # Words that a smaller vocabulary has, too.
    vocabulary = max(2, configuration.vocabulary // 4)
    step, fed = prepared(replace(configuration, batch_size=batch_size, vocabulary=vocabulary), model)
    peaks = []
    for _ in range(steps):
        tf.config.experimental.reset_memory_stats(DEVICE)
        step()
        peaks.append(statistics()["peak"] - fed)
    return peaks


def _proposal(configuration: Any, lever: str, estimate: Any) -> Proposal:
    """The change of that name, found again without an estimate, which would leave its traces in this process."""
    given = Given(batch_size=configuration.batch_size, inputs=configuration.inputs, targets=configuration.targets)
    workshop = Workshop(Origin(configuration.build, given, training_device(None), 0), estimate)
    return next(one for one in workshop.proposals() if one.name == lever)
