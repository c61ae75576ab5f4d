"""The layers of a model or of several: their paths, and what each of them is."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.memory.estimate import LayerInfo


class LayerPaths:
    """Paths of layers as people say them: `dense`, or `encoder/dense` for a layer inside a layer.

    Of a single model the paths begin below it, and what belongs to the model itself and to none of its layers has the
    model's own name as its path. Of several, each path begins with a model's name. A `tf.Module` counts as a layer, and
    the attribute that holds it inside another is its name.
    """

    def __init__(self, *roots: keras.layers.Layer | tf.Module) -> None:
        self.roots = roots
        self.layers: list[tuple[str, Any]] = []
        self._paths: dict[int, str] = {}
        self._taken: Counter[str] = Counter()
        alone = len(roots) == 1
        for root in roots:
            path = root.name if alone else self._unique(root.name)
            self._paths[id(root)] = path
            if not alone:
                self.layers.append((path, root))
            self._walk(root, "" if alone else f"{path}/")
        # The only model comes last: it is no part of itself.
        self._last = [(root.name, root) for root in roots if alone]
        self._variable_owners = {
            id(variable): (path, name)
            for path, layer in [*self.layers, *self._last]
            for name, variable in _own_variables(layer)
        }
        for path, layer in [*self.layers, *self._last]:
            for name, variable in _kept_variables(layer):
                self._variable_owners.setdefault(id(variable), (path, name))

    def path_of(self, thing: object) -> str | None:
        """The path of a layer; None for anything else."""
        return self._paths.get(id(thing))

    def owner_of(self, variable: Any) -> tuple[str, str] | None:
        """(layer path, the variable's own name) of a weight of these layers; None for another variable."""
        return self._variable_owners.get(id(variable))

    def infos(self, batch_size: int) -> tuple[LayerInfo, ...]:
        """What each layer is, in the model's order; a single model itself only if it holds weights of its own."""
        infos = [_info(path, layer, batch_size) for path, layer in self.layers]
        own = [_info(path, layer, batch_size) for path, layer in self._last]
        return (*infos, *(info for info in own if info.parameters))

    def _walk(self, parent: Any, prefix: str) -> None:
        for name, layer in _children(parent):
            if id(layer) in self._paths:
                continue
            path = self._unique(f"{prefix}{name}")
            self._paths[id(layer)] = path
            self.layers.append((path, layer))
            self._walk(layer, f"{path}/")

    def _unique(self, path: str) -> str:
        # Subclassed models may give two layers one name; a path has to name one.
        self._taken[path] += 1
        return path if self._taken[path] == 1 else f"{path}#{self._taken[path]}"


def outermost_layers(things: list[Any]) -> list[keras.layers.Layer | tf.Module]:
    """Those of `things` that are layers or modules, and part of no other layer or module among them."""
    found = [thing for thing in things if isinstance(thing, (keras.layers.Layer, tf.Module))]
    inner = {id(part) for thing in found for _, part in _children(thing)}
    # What a sequential model runs as is the same model once more.
    inner |= {id(getattr(thing, "_functional", None)) for thing in found}
    return [thing for thing in found if id(thing) not in inner]


def _children(parent: keras.layers.Layer | tf.Module) -> list[tuple[str, Any]]:
    if isinstance(parent, tf.Module):
        return _held(parent, (keras.layers.Layer, tf.Module))
    return [(layer.name, layer) for layer in parent._layers]


def _own_variables(layer: keras.layers.Layer | tf.Module) -> list[tuple[str, Any]]:
    if isinstance(layer, tf.Module):
        return _held(layer, tf.Variable)
    own = [*layer._trainable_variables, *layer._non_trainable_variables]
    own += [generator.state for generator in getattr(layer, "_seed_generators", [])]
    return [(variable.name, variable) for variable in own]


def _kept_variables(layer: keras.layers.Layer | tf.Module) -> list[tuple[str, Any]]:
    """What a layer keeps beside its weights, such as the states of a recurrent one."""
    kept = [part for value in vars(layer).values() for part in (value if isinstance(value, (list, tuple)) else [value])]
    return [(part.name, part) for part in kept if isinstance(part, keras.Variable)]


def _held(module: tf.Module, kind: Any) -> list[tuple[str, Any]]:
    """What a module's attributes hold of a kind, itself or in containers, and the attribute's name for it."""
    found = module._flatten(recursive=False, predicate=lambda thing: isinstance(thing, kind), with_path=True)
    return [("/".join(map(str, path)), thing) for path, thing in found]


def _info(path: str, layer: Any, batch_size: int) -> LayerInfo:
    if isinstance(layer, tf.Module):
        parameters = sum(math.prod(variable.shape) for _, variable in _own_variables(layer))
        return LayerInfo(path, type(layer).__name__, None, parameters)
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
