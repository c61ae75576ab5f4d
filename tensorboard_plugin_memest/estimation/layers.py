"""The layers of a model: their paths, and what each of them is."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import keras

from tensorboard_plugin_memest.memory.estimate import LayerInfo


class LayerPaths:
    """Paths of a model's layers as people say them: `dense`, or `encoder/dense` for a layer inside a layer.

    What belongs to the model itself and to none of its layers has the model's own name as its path.
    """

    def __init__(self, model: keras.Model) -> None:
        self.model = model
        self._paths: dict[int, str] = {id(model): model.name}
        self.layers: list[tuple[str, keras.layers.Layer]] = []
        self._taken: Counter[str] = Counter()
        self._walk(model, "")
        self._variable_owners = {
            id(variable): (path, variable.name)
            for path, layer in [*self.layers, (model.name, model)]
            for variable in _own_variables(layer)
        }

    def path_of(self, thing: object) -> str | None:
        """The path of a layer of this model; None for anything else."""
        return self._paths.get(id(thing))

    def owner_of(self, variable: Any) -> tuple[str, str] | None:
        """(layer path, the variable's own name) of a weight of this model; None for another variable."""
        return self._variable_owners.get(id(variable))

    def infos(self, batch_size: int) -> tuple[LayerInfo, ...]:
        """What each layer is, in the model's order; layers that only contain others and hold nothing are left out."""
        infos = [_info(path, layer, batch_size) for path, layer in self.layers]
        own = _info(self.model.name, self.model, batch_size)
        return tuple([*infos, own] if own.parameters else infos)

    def _walk(self, parent: keras.layers.Layer, prefix: str) -> None:
        for layer in parent._layers:
            if id(layer) in self._paths:
                continue
            path = f"{prefix}{layer.name}"
            self._taken[path] += 1
            if self._taken[path] > 1:
                # Subclassed models may give two layers one name; a path has to name one.
                path = f"{path}#{self._taken[path]}"
            self._paths[id(layer)] = path
            self.layers.append((path, layer))
            self._walk(layer, f"{path}/")


def _own_variables(layer: keras.layers.Layer) -> list[Any]:
    own = [*layer._trainable_variables, *layer._non_trainable_variables]
    for generator in getattr(layer, "_seed_generators", []):
        own.append(generator.state)
    return own


def _info(path: str, layer: keras.layers.Layer, batch_size: int) -> LayerInfo:
    return LayerInfo(
        path=path,
        class_name=type(layer).__name__,
        output_shape=_output_shape(layer, batch_size),
        parameters=sum(
            math.prod(variable.shape)
            for variable in [*layer._trainable_variables, *layer._non_trainable_variables]
            if variable.dtype != "string"
        ),
    )


def _output_shape(layer: keras.layers.Layer, batch_size: int) -> tuple[int | None, ...] | None:
    try:
        outputs = keras.tree.flatten(layer.output)
    except (AttributeError, ValueError):
        return None  # Subclassed layers called on no symbolic tensor have no single output.
    if not outputs or getattr(outputs[0], "shape", None) is None:
        return None
    shape = tuple(outputs[0].shape)
    return (batch_size, *shape[1:]) if shape and shape[0] is None else shape
