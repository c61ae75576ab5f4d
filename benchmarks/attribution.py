"""What is alive at the measured peak of a step against what was predicted to be, by layer and category.

python -m benchmarks.attribution [--match PATTERN]

A profile tells which op allocated each tensor that is alive, and how large it is; whose it is, is told as the Memory
tab tells it: by the op's name and the estimate, which says what each op's result is for. So what is compared is which
tensors are alive. Two moments of the prediction are held against the measured peak: its own peak, and the op at which
the peak was measured, as two moments of a step may be equally high. Bytes are those asked for, rounded as the
allocator does; what its chunks have too much is no layer's.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from rich.table import Table

import memest
from benchmarks.about import about, console
from benchmarks.measure import prepared, profiled
from benchmarks.models import CONFIGURATIONS
from benchmarks.processes import ONE, ProcessError, in_process
from tensorboard_plugin_memest.estimation.allocator import rounded
from tensorboard_plugin_memest.measure.alive import BEFORE_LAYER
from tensorboard_plugin_memest.measure.profile import measured_profiles
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, Phase
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.op_names import plain_name

MODELS = (
    "VGG-like, batch 16",
    "residual CNN, Adam, batch 64",
    "U-Net 2D normalized, SGD, batch 8",
    "causal transformer, Adam, batch 4",
    "ViT, batch 16",
    "embeddings 300k, Adam, batch 64",
    "siamese, batch 16",
    "wide MLP, Adam, batch 64",
    "dense, SGD, momentum, batch 32",
    "MobileNetV2 96, batch 4",
)
# Steps before those that are profiled, each by itself.
WARM_UP = 3
STEPS = 3

# Bytes by layer, or part that is none, and category.
Sums = Mapping[tuple[str, str], int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="regular expression on the names of the models")
    parser.add_argument("--json", type=Path, default=Path("build/attribution.json"))
    args = parser.parse_args()
    out = console()
    table = Table(
        title=f"Bytes that agree at the peak of a step, one inter-op thread: median and least of {STEPS} steps"
    )
    columns = ("predicted", "measured", "category", "layer and category", "the same at the measured op", "largest gaps")
    for title in ("configuration", *columns):
        table.add_column(title)
    rows = []
    for name in MODELS:
        if not re.search(args.match, name):
            continue
        try:
            row = _row(name)
        except ProcessError as error:
            out.print(f"{name}: {error}", style="red", highlight=False)
            continue
        rows.append(row)
        table.add_row(name, *_cells(row["steps"]))
    out.print(table)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({**about(), "rows": rows}, indent=1))


def _row(name: str) -> dict[str, Any]:
    estimate = in_process(predict, name, threads=ONE)
    return {"name": name, "steps": in_process(observe, name, estimate, threads=ONE)}


def _cells(steps: list[dict[str, Any]]) -> list[str]:
    def of(key: str) -> list[float]:
        return [step["own_peak"][key] for step in steps]

    shares = [of("category"), of("both"), [step["same_op"]["both"] for step in steps]]
    typical = sorted(steps, key=lambda step: step["own_peak"]["both"])[len(steps) // 2]["own_peak"]
    gaps = [f"{layer} {category} {size / 2**20:+.1f}" for layer, category, size in typical["gaps"][:3]]
    return [
        *(f"{statistics.median(of(key)) / 2**20:.1f} MiB" for key in ("predicted", "measured")),
        *(f"{statistics.median(one):.1%} ({min(one):.1%})" for one in shares),
        ", ".join(gaps),
    ]


def predict(name: str) -> str:
    """The estimate of a configuration, as JSON."""
    configuration = CONFIGURATIONS[name]
    return memest.estimate(
        configuration.build,
        batch_size=configuration.batch_size,
        inputs=configuration.inputs,
        targets=configuration.targets,
    ).to_json()


def observe(name: str, estimate: str) -> list[dict[str, Any]]:
    """For some steps of a real training, how far the prediction agrees with what is alive at their peaks."""
    configuration = CONFIGURATIONS[name]
    predicted = Estimate.from_json(estimate)
    step = predicted.phases["step"]
    model = configuration.build()
    train, fed = prepared(configuration, model)
    for _ in range(WARM_UP):
        train()
    variables = {variable.path for variable in model.weights} | {slot.path for slot in model.optimizer.variables}
    rows = []
    for number in range(STEPS):
        with profiled() as found, tf.profiler.experimental.Trace("train", step_num=number):
            train()
        profile = max(measured_profiles(found[0], predicted), key=lambda one: len(one.timeline))
        measured = measured_sums(profile.live_at_peak, fed, len(variables))
        timeline, at = profile.timeline, profile.timeline.peak_position
        assert at is not None, "a profile without events"
        op = timeline.op_at(at)
        rows.append(
            {
                "op": op,
                "own_peak": compare(sums(step.live_at_peak), measured),
                "same_op": compare(sums(alive_at_op(step, op)), measured),
            }
        )
    return rows


def alive_at_op(phase: Phase, op: str) -> list[Item]:
    """What is predicted to be alive when `op` has most alive; at the predicted peak if it is not among the ops."""
    timeline = phase.timeline
    same = {number for number, name in enumerate(timeline.ops) if plain_name(name) == plain_name(op)}
    positions = [position for position, number in enumerate(timeline.op_index) if number in same]
    if not positions:
        return list(phase.live_at_peak)
    alive = phase.alive_at(max(positions, key=lambda position: timeline.live_bytes[position]))
    return [one.item for one in alive or () for _ in range(one.count)]


def sums(items: Iterable[Item]) -> Sums:
    """Bytes asked for, rounded, by layer and category. A profile does not see constants being made."""
    found: Counter[tuple[str, str]] = Counter()
    for item in items:
        if item.category is not Category.CONSTANTS:
            found[item.layer, item.category.value] += rounded(item.requested_bytes)
    return found


def measured_sums(items: Iterable[Item], fed: int, variables: int) -> Sums:
    """The same of what was measured.

    Where all `variables` were found among what was there before the profile, the rest of that is the data that the
    training is fed with, `fed` bytes, and what the chunks have too much.
    """
    items = list(items)
    known = sum(item.category in (Category.WEIGHTS, Category.OPTIMIZER_SLOTS) for item in items)
    found = Counter(sums(item for item in items if item.layer != BEFORE_LAYER))
    rest = sum(item.bytes for item in items if item.layer == BEFORE_LAYER)
    if known < variables and rest > fed:
        found[BEFORE_LAYER, Category.UNATTRIBUTED.value] += rest - fed
    return found


def compare(predicted: Sums, measured: Sums) -> dict[str, Any]:
    """How many of the bytes of the larger of both agree, and where they do not."""
    left, right = Counter(predicted), Counter(measured)
    total = max(left.total(), right.total())
    differences = Counter(left)
    differences.subtract(right)
    gaps = [(layer, category, size) for (layer, category), size in differences.items() if size]
    return {
        "predicted": left.total(),
        "measured": right.total(),
        "both": (left & right).total() / total,
        "category": (_by_category(left) & _by_category(right)).total() / total,
        "gaps": sorted(gaps, key=lambda gap: -abs(gap[2]))[:20],
    }


def _by_category(held: Sums) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, category), size in held.items():
        found[category] += size
    return found


if __name__ == "__main__":
    main()
