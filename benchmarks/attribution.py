"""What is alive at the measured peak of a step against what was predicted to be, by layer and category.

python -m benchmarks.attribution [--match PATTERN]

What was measured is told apart without the estimate's help: the layer by the name scope of the op that allocated
(layers get names that cannot be mistaken), the category by the kind of allocation, the pass it happened in and how long
it lived. An optimizer's scope names no layer; its tensors may be for any weight of their shape. Bytes are those asked
for, rounded as the allocator does; what its chunks have too much is no layer's.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.table import Table

import memest
from benchmarks.about import about, console
from benchmarks.configuration import Build, Configuration
from benchmarks.measure import of_device, prepared, profiled
from benchmarks.models import CONFIGURATIONS
from benchmarks.processes import ONE, ProcessError, in_process
from tensorboard_plugin_memest.estimation.allocator import rounded
from tensorboard_plugin_memest.measure.alive import find_lives
from tensorboard_plugin_memest.measure.xplane import MemoryEvents, Profile
from tensorboard_plugin_memest.memory.category import Category

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
# Steps before the one that is profiled.
WARM_UP = 3
# Bytes up to which a tensor says nothing about where a pass begins.
SMALL = 1024

_LAYER = re.compile(r"layer(\d+)of")
NO_LAYER = ("(optimizer)", "(loss)", "(metrics)", "(step)")

# The layers, or parts that are none, that something may belong to; its category; its bytes; its name.
Held = tuple[list[str], str, int, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="regular expression on the names of the models")
    parser.add_argument("--json", type=Path, default=Path("build/attribution.json"))
    args = parser.parse_args()
    out = console()
    table = Table(title="Bytes alive at the peak of a step, one inter-op thread")
    for title in (
        "configuration",
        "predicted",
        "measured",
        "agree in category",
        "in layer and category",
        "largest gaps",
    ):
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
        gaps = ", ".join(f"{layer} {category} {size / 2**20:+.1f}" for layer, category, size in row["gaps"][:3])
        sums = [f"{row[key] / 2**20:.1f} MiB" for key in ("predicted", "measured")]
        table.add_row(name, *sums, f"{row['category']:.1%}", f"{row['both']:.1%}", gaps)
    out.print(table)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({**about(), "rows": rows}, indent=1))


def _row(name: str) -> dict[str, Any]:
    predicted, measured = (in_process(function, name, threads=ONE) for function in (predict, observe))
    return {"name": name, **compare(predicted, measured)}


def renamed(build: Build) -> Build:
    """`build` with a name for each layer that no counter of TensorFlow's can be mistaken for."""

    def made() -> keras.Model:
        model = build()
        for number, layer in enumerate(model._flatten_layers(include_self=False)):
            layer.name = f"layer{number}of"
        return model

    return made


def _configuration(name: str) -> Configuration:
    configuration = CONFIGURATIONS[name]
    return replace(configuration, build=renamed(configuration.build))


def predict(name: str) -> list[Held]:
    """What the estimate has alive at the peak of a step."""
    configuration = _configuration(name)
    made = memest.estimate(
        configuration.build,
        batch_size=configuration.batch_size,
        inputs=configuration.inputs,
        targets=configuration.targets,
    )
    return [
        ([_innermost(item.layer)], item.category.value, rounded(item.requested_bytes), item.name)
        for item in made.phases["step"].live_at_peak
        # The profile does not see constants being made.
        if item.category is not Category.CONSTANTS
    ]


def observe(name: str) -> list[Held]:
    """What is alive at the peak of a real step."""
    configuration = _configuration(name)
    model = configuration.build()
    train, _ = prepared(configuration, model)
    for _ in range(WARM_UP):
        train()
    with profiled() as found, tf.profiler.experimental.Trace("train", step_num=0):
        train()
    held, of_shape = _variables(model)
    return held + _made_in_step(found[0], model, of_shape)


def _variables(model: keras.Model) -> tuple[list[Held], dict[tuple[int, ...], list[str]]]:
    """The variables of the layers and of the optimizer, which live all the time, and the layers of each shape."""
    held: list[Held] = []
    of_shape: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for layer in model._flatten_layers(include_self=False):
        for weight in [*layer._trainable_variables, *layer._non_trainable_variables]:
            of_shape[tuple(weight.shape)].append(layer.name)
            held.append(([layer.name], Category.WEIGHTS.value, _bytes(weight), weight.path))
    for slot in model.optimizer.variables:
        layers = [*of_shape.get(tuple(slot.shape), ()), *NO_LAYER]
        held.append((layers, Category.OPTIMIZER_SLOTS.value, _bytes(slot), slot.path))
    return held, of_shape


def _bytes(variable: Any) -> int:
    return rounded(math.prod(variable.shape) * tf.as_dtype(variable.dtype).size)


def _neighbours(model: keras.Model) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """For each layer, those that read what it makes, and those whose outputs it reads."""
    after: dict[str, list[str]] = defaultdict(list)
    before: dict[str, list[str]] = defaultdict(list)
    for layer in model._flatten_layers(include_self=False):
        for node in layer._inbound_nodes:
            for parent in node.parent_nodes:
                after[parent.operation.name].append(layer.name)
                before[layer.name].append(parent.operation.name)
    return after, before


def _made_in_step(profile: Profile, model: keras.Model, of_shape: dict[tuple[int, ...], list[str]]) -> list[Held]:
    """What the profiled step allocated and holds at its peak; what becomes a variable's value is left out.

    An update may hand its result over to the variable, whose old value goes: those bytes are the variable's. An op may
    hand its memory over to the layer after it, or in the backward pass before it, and the profile only tells who
    allocated.
    """
    events = of_device(profile)
    lives = find_lives(events)
    peak = int(np.argmax(events.in_use))
    backward_begins = _backward_begins(events)
    after, before = _neighbours(model)
    until = events.requested_bytes[: peak + 1]
    went = Counter(until[~events.allocates[: peak + 1] & (lives.freed[: peak + 1] < 0)].tolist())
    held: list[Held] = []
    for start in np.flatnonzero(events.allocates[: peak + 1] & (lives.freed_at[: peak + 1] > peak)).tolist():
        op, size = events.texts[events.op[start]], int(events.requested_bytes[start])
        region, shape = events.texts[events.region[start]], _shape(events.texts[events.shape[start]])
        outlives = lives.freed_at[start] == len(events)
        copies = region == "temp" and op.rpartition("/")[2].startswith(("Assign", "ResourceScatter"))
        if (outlives or copies) and went[size]:
            went[size] -= 1
            continue
        named = _LAYER.findall(op)
        layer = f"layer{named[-1]}of" if named else ""
        layers = [layer] if layer else [*of_shape.get(shape, ()), *NO_LAYER]
        # Who reads an output in the forward pass may need it in the backward pass, before its own layer does.
        begins = min(backward_begins.get(reader, len(events)) for reader in [layer, *after[layer]])
        if op == "DeepCopy":
            layers, category = ["(input)"], Category.INPUTS
        elif region == "temp" and not copies:
            category = Category.WORKSPACE
        elif "gradient_tape/" in op and shape and shape in of_shape:
            category = Category.GRADIENTS
        elif layer and "gradient_tape/" not in op and lives.freed_at[start] > begins:
            category = Category.ACTIVATIONS
            layers += after[layer]
        else:
            category = Category.TEMPORARIES
            layers += before[layer] if "gradient_tape/" in op else after[layer]
        held.append((layers, category.value, rounded(size), op))
    return held


def _backward_begins(events: MemoryEvents) -> dict[str, int]:
    """For each layer, which event is the first of its backward pass; shapes and other small things come early."""
    found: dict[str, int] = {}
    for position in np.flatnonzero(events.allocates & (events.requested_bytes > SMALL)).tolist():
        op = events.texts[events.op[position]]
        if "gradient_tape/" in op:
            for number in _LAYER.findall(op)[-1:]:
                found.setdefault(f"layer{number}of", position)
    return found


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d+", text))


def _innermost(path: str) -> str:
    return path.rpartition("/")[2]


def compare(predicted: Sequence[Held], measured: Sequence[Held]) -> dict[str, Any]:
    """How many of the bytes of the larger of both agree, and where they do not."""
    left: Counter[tuple[str, str]] = Counter()
    for (layer,), category, size, _ in predicted:
        left[layer, category] += size
    total = max(sum(left.values()), sum(size for _, _, size, _ in measured))
    over: Counter[tuple[str, str]] = Counter()
    agreed = 0
    # What can only be of one layer goes first.
    for layers, category, size, _ in sorted(measured, key=lambda one: len(one[0])):
        for layer in layers:
            taken = min(size, left[layer, category])
            left[layer, category] -= taken
            agreed += taken
            size -= taken
        over[layers[0], category] += size
    gaps = [(layer, category, size) for (layer, category), size in (left - over).items()]
    gaps += [(layer, category, -size) for (layer, category), size in over.items() if size]
    by_category = _sums(predicted) & _sums(measured)
    return {
        "predicted": sum(size for _, _, size, _ in predicted),
        "measured": sum(size for _, _, size, _ in measured),
        "both": agreed / total,
        "category": sum(by_category.values()) / total,
        "gaps": sorted(gaps, key=lambda gap: -abs(gap[2]))[:20],
    }


def _sums(held: Sequence[Held]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for _, category, size, _ in held:
        sums[category] += size
    return sums


if __name__ == "__main__":
    main()
