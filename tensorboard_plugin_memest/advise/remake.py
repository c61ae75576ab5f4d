"""Models made again, as they are or with some layers changed, from their configuration."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras

from tensorboard_plugin_memest.estimation.optimizers import copied_optimizer
from tensorboard_plugin_memest.estimation.subject import layer_classes
from tensorboard_plugin_memest.memory.errors import UsageError, reason_of

# Sizes of a tensor, the batch first.
Shape = tuple[int | None, ...]
# What takes the place of a layer.
Replacement = Callable[[keras.layers.Layer], keras.layers.Layer]


def remade(model: keras.Model) -> keras.Model:
    """A new model like `model`, compiled alike, with variables of its own.

    Layers of Keras' default precision take the one that is set now.

    Raises:
        ValueError: it cannot be made from its configuration.
    """
    try:
        copy = _from_config(model, _in_precision(model.get_config(), keras.config.dtype_policy().name))
    except Exception as error:
        with contextlib.suppress(Exception):
            return compiled_like(type(model)(), model)
        raise ValueError(
            f"the model {model.name!r} cannot be made again from its configuration ({type(error).__name__}); pass "
            "memest.estimate a function that builds it"
        ) from error
    return compiled_like(copy, model)


def joined(layer: keras.layers.Layer) -> tuple[int, ...] | None:
    """How many dimensions of its input go into each of its output's, where a Reshape joins neighbours; else None."""
    try:
        given, wanted = list(layer.input.shape[1:]), layer.output.shape[1:]
    except (AttributeError, ValueError):
        return None
    if not isinstance(layer, keras.layers.Reshape) or None in (*given, *wanted):
        return None
    counts = []
    for size in wanted:
        count, product = 0, 1
        while product < size and count < len(given):
            product *= given[count]
            count += 1
        if product != size:
            return None
        counts.append(count)
        del given[:count]
    # Only ones can be left, and they go anywhere.
    return (*counts[:-1], counts[-1] + len(given)) if counts else None


class Joining(keras.layers.Layer):  # type: ignore[misc]
    """A Reshape that joins neighbouring dimensions of whatever sizes, `counts` of them in each."""

    def __init__(self, counts: Sequence[int], **options: Any) -> None:
        super().__init__(**options)
        self.counts = tuple(counts)

    def call(self, inputs: Any) -> Any:
        """Inputs of (batch, ...), reshaped."""
        ends = list(itertools.accumulate(self.counts, initial=1))
        sizes = (math.prod(inputs.shape[start:end]) for start, end in itertools.pairwise(ends))
        return keras.ops.reshape(inputs, (-1, *sizes))


def with_inputs_resized(model: keras.Model, sizes: Mapping[Shape, Shape]) -> keras.Model:
    """A model like `model`, a functional or sequential one, whose inputs have other sizes.

    Args:
        model: built.
        sizes: for the shape of an input, the batch included, what it is instead. Models inside `model` whose inputs
            end in the same sizes, as those that run on each frame of a video, change alike, and so do Reshape
            layers that join dimensions.

    Raises:
        ValueError: a layer takes inputs of one size only.
    """
    joining = {layer.name: joined(layer) for layer in model._flatten_layers(include_self=False)}

    def resized(shape: Shape) -> Shape:
        for old, new in sizes.items():
            inner = len(shape) - 1
            if 0 < inner < len(old) and shape[1:] == old[-inner:]:
                return (shape[0], *new[-inner:])
        return shape

    def changed(config: Any) -> Any:
        if isinstance(config, dict):
            counts = (
                joining.get(config.get("config", {}).get("name")) if config.get("class_name") == "Reshape" else None
            )
            if counts:
                name = Joining.__name__
                made = {"name": config["config"]["name"], "counts": counts}
                return {**config, "module": None, "class_name": name, "registered_name": name, "config": made}
            kept = {key: changed(value) for key, value in config.items()}
            shape = kept.get("batch_shape")
            return {**kept, "batch_shape": resized(tuple(shape))} if isinstance(shape, (list, tuple)) else kept
        return [changed(value) for value in config] if isinstance(config, list) else config

    try:
        made = _from_config(model, changed(_unbuilt(model.get_config())))
    except Exception as error:
        raise UsageError(f"A layer takes inputs of one size only: {reason_of(error)}") from error
    return compiled_like(made, model)


def _unbuilt(config: Any) -> Any:
    """A configuration without the sizes that the layers in it were built for, such as the one in a TimeDistributed."""
    if isinstance(config, dict):
        return {key: _unbuilt(value) for key, value in config.items() if key != "build_config"}
    return [_unbuilt(value) for value in config] if isinstance(config, list) else config


def _from_config(model: keras.Model, config: Any) -> keras.Model:
    with keras.saving.custom_object_scope({**layer_classes(model), Joining.__name__: Joining}):
        return type(model).from_config(config)


def _in_precision(config: Any, policy: str) -> Any:
    """A configuration in which what computes in float32 computes by `policy`."""
    if isinstance(config, dict):
        if config.get("class_name") == "DTypePolicy" and config.get("config", {}).get("name") == "float32":
            return {**config, "config": {"name": policy}}
        return {key: _in_precision(value, policy) for key, value in config.items()}
    return [_in_precision(value, policy) for value in config] if isinstance(config, list) else config


def with_layers_replaced(model: keras.Model, numbers: Sequence[int], replacement: Replacement) -> keras.Model:
    """A model like `model`, a functional or sequential one, in which some of its layers are others.

    Args:
        model: built.
        numbers: which of `model.layers`; names change from one building of a model to the next.
        replacement: makes a layer, with the same name.
    """
    wanted = [model.layers[number] for number in numbers]

    def clone(layer: keras.layers.Layer) -> keras.layers.Layer:
        return replacement(layer) if layer in wanted else type(layer).from_config(_unbuilt(layer.get_config()))

    with keras.saving.custom_object_scope(layer_classes(model)), _not_compiled(model):
        copy = keras.models.clone_model(model, clone_function=clone)
    return compiled_like(copy, model)


@contextlib.contextmanager
def _not_compiled(model: keras.Model) -> Iterator[None]:
    """Inside, `model` is cloned without what it was compiled with, which would create the optimizer's variables."""
    compiled = model.compiled
    model.compiled = False
    try:
        yield
    finally:
        model.compiled = compiled


def in_a_row(name: str, *layers: keras.layers.Layer) -> keras.layers.Layer:
    """Several layers as one."""
    return keras.Sequential(list(layers), name=name)


def compiled_like(copy: keras.Model, model: keras.Model, loss: Any = None) -> keras.Model:
    """`copy`, compiled with an optimizer like that of `model` and the same loss or another, if `model` is compiled."""
    if model.compiled and model.optimizer is not None:
        # What scales the loss is put around the optimizer again where the precision asks for it.
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        copy.compile(optimizer=copied_optimizer(optimizer), loss=loss or model.loss, jit_compile=False)
    return copy
