"""Changes to single layers of a model where one holds a large part of all parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras

from tensorboard_plugin_memest.advise.blueprint import Blueprint, Part
from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.advise.proposal import WORTH_CHANGING, Proposal
from tensorboard_plugin_memest.advise.remake import in_a_row, with_layers_replaced
from tensorboard_plugin_memest.advise.written import written

_POOLING = {3: "1D", 4: "2D", 5: "3D"}

# What may stand between a Flatten and the layer that has to take all that it gives.
_PASSES_ON = frozenset(
    {
        "Activation",
        "ActivityRegularization",
        "AlphaDropout",
        "BatchNormalization",
        "Dropout",
        "ELU",
        "GaussianDropout",
        "GaussianNoise",
        "LayerNormalization",
        "LeakyReLU",
        "Masking",
        "ReLU",
    }
)
# What takes inputs of one size only.
_OF_ONE_SIZE = frozenset({"Add", "Average", "Maximum", "Minimum", "Multiply", "Reshape", "Subtract"})
# What says how large a layer is.
SIZES = {
    **dict.fromkeys(("Dense", "LSTM", "GRU", "SimpleRNN"), "units"),
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D", "SeparableConv1D", "SeparableConv2D"), "filters"),
    **dict.fromkeys(("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"), "filters"),
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"), "filters"),
}


def architecture(blueprint: Blueprint) -> Iterator[Proposal]:
    """What can be changed about the layers that hold most parameters."""
    for part in blueprint.parts:
        if part.parameters >= WORTH_CHANGING * blueprint.parameters:
            yield from _before(blueprint, part)
            yield from _smaller(blueprint, part)
            source = _source(blueprint, part)
            if part.class_name == "Dense" and source is not None and source.class_name == "Dense":
                # A kernel has a row for each number that the layer before gives.
                yield from _smaller(blueprint, source)


class _DenseWithMask(keras.layers.Dense):  # type: ignore[misc]
    """A Dense that takes what calls of TimeDistributed say beside their inputs."""

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The same as a Dense."""
        return super().call(inputs)


def undistributed(blueprint: Blueprint) -> Iterator[Proposal]:
    """Dense layers that run once instead of once for each step: unrolled, each step has a gradient of the kernel."""
    parts = [
        part for part in blueprint.parts if part.class_name == "TimeDistributed" and part.unwrapped()[0] == "Dense"
    ]
    if not parts:
        return

    def bare(layer: keras.layers.Layer) -> keras.layers.Layer:
        return _DenseWithMask.from_config({**layer.layer.get_config(), "name": layer.name})

    numbers = [part.number for part in parts]
    lines = [written("Dense", part.unwrapped()[1]) for part in parts]
    yield Proposal(
        "undistributed",
        "undistributed",
        f"Dense without TimeDistributed around it: {', '.join(part.name for part in parts)}",
        Change(edits=(lambda model: with_layers_replaced(model, numbers, bare),)),
        "Nothing: a Dense works on the last axis of whatever it gets, so results and weights are the same, and it is "
        "faster.",
        "\n".join(f"{line}  # instead of layers.TimeDistributed({line})" for line in lines),
        0,
    )


def _source(blueprint: Blueprint, part: Part) -> Part | None:
    """The only layer that `part` takes from, but for what passes it on between them."""
    sources = [one for one in blueprint.parts if part.name in one.feeds]
    if len(sources) != 1:
        return None
    (source,) = sources
    return _source(blueprint, source) if source.class_name in _PASSES_ON else source


def _before(blueprint: Blueprint, part: Part) -> Iterator[Proposal]:
    """What a layer is fed, made smaller."""
    flatten = _source(blueprint, part)
    if flatten is None or flatten.unwrapped()[0] != "Flatten" or flatten.input_shape is None:
        return
    each_step = flatten.class_name == "TimeDistributed"
    rank = _POOLING.get(len(flatten.input_shape) - each_step)
    if rank is None:
        return
    layers = keras.layers
    name = flatten.name

    def replaced(make: Callable[[str], keras.layers.Layer]) -> Change:
        def made(layer: keras.layers.Layer) -> keras.layers.Layer:
            if not each_step:
                return make(layer.name)
            return layers.TimeDistributed(make(f"{layer.name}_inner"), name=layer.name)

        return Change(edits=(lambda model: with_layers_replaced(model, [flatten.number], made),))

    def at_each_step(code: str) -> str:
        return f"layers.TimeDistributed({code})" if each_step else code

    old = at_each_step("layers.Flatten()")
    pooled = f"layers.GlobalAveragePooling{rank}()"
    yield Proposal(
        "global_pooling",
        "architecture",
        f"Global average pooling instead of {name}, before {part.name}",
        replaced(lambda name: getattr(layers, f"GlobalAveragePooling{rank}")(name=name)),
        "Another model: positions are averaged away, as in most modern image classifiers; it has to be trained anew.",
        f"{at_each_step(pooled)}  # instead of {old}",
        2,
    )
    coarser = f'layers.AveragePooling{rank}(4, padding="same")'
    yield Proposal(
        "pooling",
        "architecture",
        f"Average pooling by 4 before {name}",
        replaced(
            lambda name: in_a_row(
                name, getattr(layers, f"AveragePooling{rank}")(4, padding="same"), layers.Flatten(name=f"{name}_flat")
            )
        ),
        "Another model: coarser positions, the rest as before; strides in the convolutions do the same and are faster.",
        f"{at_each_step(coarser)}\n{old}",
        2,
    )
    if (flatten.input_shape[-1] or 0) > 2:
        narrow = f'layers.Conv{rank}(2, 1, activation="relu")'
        yield Proposal(
            "bottleneck",
            "architecture",
            f"A 1x1 convolution to 2 channels before {name}",
            replaced(
                lambda name: in_a_row(
                    name,
                    getattr(layers, f"Conv{rank}")(2, 1, activation="relu"),
                    layers.Flatten(name=f"{name}_flat"),
                )
            ),
            "Another model: fewer features at each position.",
            f"{at_each_step(narrow)}\n{old}",
            2,
        )


def _keeps_size(blueprint: Blueprint, part: Part) -> bool:
    """Whether what `part` gives must be of the size that it is: it is added to something else, or reshaped."""
    readers = [one for one in blueprint.parts if one.name in part.feeds]
    return any(
        one.class_name in _OF_ONE_SIZE or (one.class_name in _PASSES_ON and _keeps_size(blueprint, one))
        for one in readers
    )


def _smaller(blueprint: Blueprint, part: Part) -> Iterator[Proposal]:
    size = SIZES.get(part.class_name)
    # The last layer's size is what the model is asked for.
    if size is None or not part.feeds or part.config.get(size, 0) < 2 or _keeps_size(blueprint, part):
        return
    now = part.config[size]
    several = sum(one.class_name == part.class_name and one.config.get(size) == now for one in blueprint.parts)
    for divisor in (2, 8):
        if now // divisor < 1:
            continue
        smaller = now // divisor

        def shrink(model: keras.Model, smaller: int = smaller) -> keras.Model:
            def replacement(layer: keras.layers.Layer) -> keras.layers.Layer:
                return type(layer).from_config({**layer.get_config(), size: smaller})

            return with_layers_replaced(model, [part.number], replacement)

        name = f"smaller_{part.class_name.lower()}_{smaller}"
        yield Proposal(
            f"{name}_{part.name}" if several > 1 else name,
            "units",
            f"A smaller {part.class_name}: {part.name} with {smaller} {size} instead of {now}",
            Change(edits=(shrink,)),
            "Another model: less capacity, which a layer of this size seldom needs.",
            f"{written(part.class_name, part.config, **{size: smaller})}  # {part.name}",
            2,
        )
