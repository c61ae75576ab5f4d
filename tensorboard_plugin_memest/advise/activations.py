"""Changes where what layers compute takes the memory: less of an example at a time, and fewer features of it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import keras

from tensorboard_plugin_memest.advise.architecture import SIZES
from tensorboard_plugin_memest.advise.blueprint import Blueprint, Part
from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.advise.proposal import Proposal
from tensorboard_plugin_memest.advise.remake import Shape, with_inputs_resized, with_layers_replaced
from tensorboard_plugin_memest.advise.written import compiling

# What is cut is left at least so long.
SHORTEST_SIDE, SHORTEST_SEQUENCE = 32, 64
# Networks that go down and up again halve their sides up to five times.
MOST_HALVINGS = 32


def smaller_inputs(blueprint: Blueprint) -> Iterator[Proposal]:
    """Half of each side of images and volumes, half of each sequence."""
    sizes = {shape: _halved(blueprint, shape, dtype) for shape, dtype in blueprint.inputs}
    dtypes = dict(blueprint.inputs)
    cut = {shape: smaller for shape, smaller in sizes.items() if smaller != shape}
    if not cut:
        return
    code = [f"{_written(new, dtypes[old])}  # instead of {_written(old, dtypes[old])}" for old, new in cut.items()]
    if len(blueprint.inputs) == 1:
        ((old, new),) = cut.items()
        last = max(axis for axis, size in enumerate(old) if size != new[axis])
        code.append(f"x = x[:, {', '.join(f':{size}' for size in new[1 : last + 1])}]  # or resized, or in patches")
    reshaped = [part.name for part in blueprint.parts if -1 not in part.config.get("target_shape", (-1,))]
    if reshaped:
        code.append(f"# and the target_shape of {', '.join(reshaped)} for these sizes")
    yield Proposal(
        "smaller_input",
        "input",
        f"Inputs of {', '.join(f'{_told(new)} instead of {_told(old)}' for old, new in cut.items())}",
        Change(edits=(lambda model: with_inputs_resized(model, cut),), keeps_inputs=False),
        "Less of an example at a time: resized, or in patches whose predictions are put together again. What needs "
        "more of it to be seen is lost.",
        "\n".join(code),
        2,
    )


def narrower(blueprint: Blueprint) -> Iterator[Proposal]:
    """Half the filters in all convolutions but those that make the model's outputs."""
    parts = [part for part in blueprint.parts if _makes_features(part) and _leads_to_weights(blueprint, part)]
    if len(parts) < 2:
        return
    numbers = [part.number for part in parts]

    def half_as_wide(layer: keras.layers.Layer) -> keras.layers.Layer:
        config = layer.get_config()
        return type(layer).from_config({**config, "filters": config["filters"] // 2})

    yield Proposal(
        "narrower",
        "units",
        f"Half the filters in all {len(parts)} convolutions before the last layer",
        Change(edits=(lambda model: with_layers_replaced(model, numbers, half_as_wide),)),
        "Another model: less capacity, and about a quarter of the computing.",
        f"halved = [model.layers[number] for number in {numbers}]\n\n\n"
        "def half_as_wide(layer):\n"
        "    config = layer.get_config()\n"
        "    if layer in halved:\n"
        '        config["filters"] //= 2\n'
        "    return type(layer).from_config(config)\n\n\n"
        "narrower = keras.models.clone_model(model, clone_function=half_as_wide)\n"
        f"{compiling('narrower')}",
        2,
    )


def _halved(blueprint: Blueprint, shape: Shape, dtype: str) -> Shape:
    """An input with half of each side or of its length, as far as that makes sense."""
    axes, shortest = _axes(blueprint, len(shape), dtype), SHORTEST_SIDE if len(shape) > 3 else SHORTEST_SEQUENCE
    smaller = list(shape)
    for axis in axes:
        size = shape[axis]
        if size is None:
            continue
        unit = math.gcd(size, MOST_HALVINGS)
        half = size // 2 // unit * unit
        if half >= shortest:
            smaller[axis] = half
    return tuple(smaller)


def _axes(blueprint: Blueprint, rank: int, dtype: str) -> range:
    """The dimensions of an input that are places: of an image, of a volume, in a sequence."""
    first = any(part.config.get("data_format") == "channels_first" for part in blueprint.parts)
    frames = any(part.class_name.startswith(("TimeDistributed", "ConvLSTM")) for part in blueprint.parts)
    if rank == 2:
        # Numbers of a table are features, words are places.
        return range(1, 2) if "int" in dtype else range(0)
    begin = 2 if rank == 5 and frames else 1
    return range(begin + first, rank - 1 + first)


def _makes_features(part: Part) -> bool:
    size = SIZES.get(part.class_name)
    return size == "filters" and part.config.get("filters", 0) > 1 and part.config.get("groups", 1) == 1


def _leads_to_weights(blueprint: Blueprint, part: Part) -> bool:
    """Whether a layer's output goes into another that has a size of its own, and so is no output of the model."""
    by_name = {one.name: one for one in blueprint.parts}

    @functools.cache
    def leads(name: str) -> bool:
        return any(by_name[reader].class_name in SIZES or leads(reader) for reader in by_name[name].feeds)

    return leads(part.name)


def _told(shape: Shape) -> str:
    return " x ".join(str(size) for size in shape[1:])


def _written(shape: Shape, dtype: str) -> str:
    told = str(shape[1:]) if shape[0] is None else f"batch_shape={shape}"
    return f"keras.Input({told}{'' if dtype == 'float32' else f', dtype={chr(34)}{dtype}{chr(34)}'})"
