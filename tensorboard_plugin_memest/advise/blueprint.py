"""What a model is made of, as far as levers want to know: read off a model that is never kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from tensorboard_plugin_memest.advise.recomputed import can_be_recomputed


@dataclass(frozen=True)
class Part:
    """A layer of the model itself, not of a layer inside it.

    Attributes:
        number: which of the model's layers.
        name: its name.
        class_name: its class's name.
        config: its configuration.
        parameters: elements of its weights.
        input_shape: shape of its input, the batch included; None when it has none or several.
        feeds: names of the layers that take its output.
        can_adapt: whether it can be given low-rank adapters.
        can_recompute: whether it can run twice a step.
    """

    number: int
    name: str
    class_name: str
    config: dict[str, Any]
    parameters: int
    input_shape: tuple[int | None, ...] | None
    feeds: tuple[str, ...]
    can_adapt: bool
    can_recompute: bool

    def unwrapped(self) -> tuple[str, dict[str, Any]]:
        """Class name and configuration of what a TimeDistributed layer runs at each step; else of the layer itself."""
        inner = self.config.get("layer") if self.class_name == "TimeDistributed" else None
        return (inner["class_name"], inner["config"]) if inner else (self.class_name, self.config)


@dataclass(frozen=True)
class Blueprint:
    """A model's parts and optimizer.

    Attributes:
        parts: its layers, in order.
        parameters: elements of all its weights.
        layers_can_change: whether single layers can be put in place of others: it is functional or sequential.
        optimizer: an unbuilt copy of its optimizer; None if it has none.
        dtype_policy: name of the policy of its layers.
        inputs: shape, the batch included, and type of each input that it was made for.
        loss: name of its loss, or of its class; empty where it has none, or several.
    """

    parts: tuple[Part, ...]
    parameters: int
    layers_can_change: bool
    optimizer: Any
    dtype_policy: str
    inputs: tuple[tuple[tuple[int | None, ...], str], ...] = ()
    loss: str = ""


def blueprint_of(model: keras.Model, optimizer: Any) -> Blueprint:
    """What `model` is made of.

    Args:
        model: a model; if it is not built, little is known of it.
        optimizer: an unbuilt optimizer like the one it is trained with.
    """
    layers = list(getattr(model, "layers", []))
    readers: dict[str, list[str]] = {layer.name: [] for layer in layers}
    functional = type(model) in (keras.Sequential, keras.Model) or isinstance(model, keras.src.models.Functional)
    for layer in layers:
        for source in _sources(layer):
            readers.get(source, []).append(layer.name)
    return Blueprint(
        parts=tuple(_part(number, layer, tuple(readers[layer.name])) for number, layer in enumerate(layers)),
        parameters=model.count_params() if model.built else 0,
        layers_can_change=functional and model.built and bool(layers),
        optimizer=optimizer,
        dtype_policy=next((layer.dtype_policy.name for layer in layers), "float32"),
        inputs=tuple((tuple(one.shape), one.dtype) for one in model.inputs) if functional and model.built else (),
        loss=_loss_of(model),
    )


def _loss_of(model: keras.Model) -> str:
    loss = getattr(model, "loss", None)
    if isinstance(loss, str):
        return loss
    return type(loss).__name__ if isinstance(loss, keras.losses.Loss) else getattr(loss, "__name__", "")


def _part(number: int, layer: keras.layers.Layer, feeds: tuple[str, ...]) -> Part:
    return Part(
        number=number,
        name=layer.name,
        class_name=type(layer).__name__,
        config=_config(layer),
        parameters=layer.count_params() if layer.built else 0,
        input_shape=_input_shape(layer),
        feeds=feeds,
        can_adapt=hasattr(layer, "enable_lora"),
        can_recompute=can_be_recomputed(layer),
    )


def _config(layer: keras.layers.Layer) -> dict[str, Any]:
    try:
        return dict(layer.get_config())
    except Exception:
        return {}


def _input_shape(layer: keras.layers.Layer) -> tuple[int | None, ...] | None:
    try:
        inputs = keras.tree.flatten(layer.input)
    except (AttributeError, ValueError):
        return None
    return tuple(inputs[0].shape) if len(inputs) == 1 else None


def _sources(layer: keras.layers.Layer) -> list[str]:
    """Names of the layers whose outputs a layer takes."""
    try:
        inputs = keras.tree.flatten(layer.input)
    except (AttributeError, ValueError):
        return []
    return [tensor._keras_history.operation.name for tensor in inputs if hasattr(tensor, "_keras_history")]
