"""The variables of a training run: what each is, whose it is, and how many bytes it holds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.layers import LayerPaths
from tensorboard_plugin_memest.estimation.reachable import inner_optimizers, optimizers_of, reachable
from tensorboard_plugin_memest.memory.category import Category

OPTIMIZER = "(optimizer)"
LOSS = "(loss)"
METRICS = "(metrics)"
INPUT = "(input)"
STEP = "(step)"

# What Adam's paper and the code of its relatives call the slots that Keras names momentum and velocity.
_ADAM_LETTERS = {"momentum": "m", "velocity": "v", "m": "m", "u": "u", "velocity_hat": "v hat"}
_ADAM_FAMILY = {"Adam", "AdamW", "Adamax", "Nadam", "Lamb"}

# A tensor with more elements decides nothing.
MOST_DECIDING_ELEMENTS = 64

# What Keras calls a variable without a name.
_UNNAMED = re.compile(r"variable(_\d+)?")


@dataclass(frozen=True)
class Variable:
    """A variable that stays between steps.

    Attributes:
        name: layer path and own name, `"dense/kernel"`; an optimizer's slot carries the optimizer's words for it. No
            two variables of a run share one.
        layer: path of the layer it belongs to (a slot: the layer of its weight), or `"(optimizer)"`, `"(metrics)"`.
        category: weights or optimizer_slots; unattributed for state that is neither.
        role: `"weight"`, `"Adam m"`, `"state"`.
        weight: name of the weight it is or belongs to; None for other state.
        shape: dimensions.
        dtype: such as `"float32"`.
        bytes: what its elements take.
        trainable: whether the step may update it with a gradient.
    """

    name: str
    layer: str
    category: Category
    role: str
    weight: str | None
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    trainable: bool

    def __hash__(self) -> int:
        # Of all fields it would be worked out anew each time that something is looked up.
        return hash(self.name)


def size_in_bytes(shape: Iterable[int], dtype: str | tf.DType) -> int:
    """Bytes of a dense tensor; 0 for types without a fixed size (strings, resources, variants)."""
    dtype = tf.as_dtype(dtype)
    if dtype in (tf.string, tf.resource, tf.variant):
        return 0
    size: int = dtype.size
    return math.prod(shape) * size


def is_small(shape: Sequence[int]) -> bool:
    """Whether a tensor of a shape is one that may decide how often a loop runs or which branch is taken."""
    return len(shape) <= 1 and math.prod(shape) <= MOST_DECIDING_ELEMENTS


class Variables:
    """All variables that a training keeps, found by handle."""

    def __init__(self, things: Sequence[Any], paths: LayerPaths) -> None:
        """The variables of `things` and what they hold: of layers, optimizers and metrics, and plain `tf.Variable`s.

        Args:
            things: layers, optimizers, metrics, modules, plain variables, or what holds such.
            paths: names for the layers among them.
        """
        self.all: list[Variable] = []
        self._by_handle: dict[int, Variable] = {}
        self._taken: Counter[str] = Counter()
        self._weights: dict[int, Variable] = {}  # by id of the Keras variable
        self._slugs: list[tuple[str, Variable]] = []
        layers = [root for root in paths.roots if isinstance(root, keras.layers.Layer)]
        trainable = {id(variable) for layer in layers for variable in layer.trainable_variables}
        for variable in [variable for layer in layers for variable in layer.variables]:
            self._add_weight(variable, paths, id(variable) in trainable)
        plain = [thing for thing in things if isinstance(thing, tf.Variable)]
        for variable in [one for one in plain if one.trainable]:
            self._add_plain(variable, paths)
        for optimizer in optimizers_of(things):
            self._add_slots(optimizer)
        metrics = [thing for thing in reachable(things) if isinstance(thing, keras.metrics.Metric)]
        measured = [variable for layer in layers for variable in getattr(layer, "metrics_variables", ())]
        for variable in [*measured, *(variable for metric in metrics for variable in metric.variables)]:
            self._add(variable, variable.path, METRICS, Category.UNATTRIBUTED, "metric state", None)
        for variable in [thing for thing in reachable(things) if isinstance(thing, keras.Variable)]:
            # States that a layer keeps beside its weights.
            layer, own_name = paths.owner_of(variable) or ("", "")
            if layer:
                self._add(variable, f"{layer}/{own_name}", layer, Category.UNATTRIBUTED, "state", None)
        for variable in plain:
            # What is left is no layer's, optimizer's or metric's own.
            self._add_plain(variable, paths)

    def of_handle(self, handle: Any) -> Variable | None:
        """The variable behind a resource tensor; None if it is none of the model's."""
        return self._by_handle.get(id(handle))

    def add_other(self, handle: Any, name: str, shape: tuple[int, ...], dtype: str) -> Variable:
        """Takes in a variable that exists and that the model does not know (a plain tf.Variable, another model's)."""
        variable = self.passing(name, shape, dtype)
        self.all.append(variable)
        self._by_handle[id(handle)] = variable
        return variable

    def passing(self, name: str, shape: tuple[int, ...], dtype: str) -> Variable:
        """A variable that nobody keeps, such as a layer's kernel that was quantized."""
        size = size_in_bytes(shape, dtype)
        return Variable(self._unique(name), STEP, Category.UNATTRIBUTED, "variable", None, shape, dtype, size, False)

    def forget(self, variables: Collection[Variable]) -> None:
        """Leaves out what turned out to be none of the run's."""
        self.all = [variable for variable in self.all if variable not in variables]

    def _add_weight(self, variable: Any, paths: LayerPaths, trainable: bool) -> None:
        layer, own_name = paths.owner_of(variable) or (STEP, variable.path)
        name = f"{layer}/{own_name}"
        if variable.name == "seed_generator_state":
            self._add(variable, name, layer, Category.UNATTRIBUTED, "random state", None)
            return
        name = self._unique(name)
        added = self._add(variable, name, layer, Category.WEIGHTS, "weight", name, trainable)
        if added is not None:
            self._weights[id(variable)] = added
            self._slugs.append((_slug(variable), added))

    def _add_plain(self, variable: Any, paths: LayerPaths) -> None:
        handle = getattr(variable, "handle", None)
        if handle is None or id(handle) in self._by_handle or not variable.shape.is_fully_defined():
            return
        layer, own_name = paths.owner_of(variable) or (STEP, variable.name.removesuffix(":0"))
        name = self._unique(own_name if layer == STEP else f"{layer}/{own_name}")
        category, role = (Category.WEIGHTS, "weight") if variable.trainable else (Category.UNATTRIBUTED, "variable")
        shape, dtype = tuple(variable.shape), variable.dtype.base_dtype.name
        weight = name if variable.trainable else None
        size = size_in_bytes(shape, dtype)
        added = Variable(name, layer, category, role, weight, shape, dtype, size, variable.trainable)
        self.all.append(added)
        self._by_handle[id(handle)] = added
        if variable.trainable:
            self._weights[id(variable)] = added
            self._slugs.append((_slug(variable), added))

    def _add_slots(self, optimizer: Any) -> None:
        for inner in inner_optimizers(optimizer):
            self._add_slots(inner)
        family = type(optimizer).__name__
        places = _places(optimizer)
        for variable in optimizer.variables:
            slot, owner = self._slot(variable, *places.get(id(variable), ("", None)))
            if family in _ADAM_FAMILY:
                slot = _ADAM_LETTERS.get(slot, slot)
            role = f"{family} {slot.replace('_', ' ')}"
            if owner is None:
                self._add(variable, variable.path, OPTIMIZER, Category.OPTIMIZER_SLOTS, role, None)
            else:
                name = f"{owner.name} ({role})"
                self._add(variable, name, owner.layer, Category.OPTIMIZER_SLOTS, role, owner.weight)

    def _slot(self, variable: Any, attribute: str, weight: Any) -> tuple[str, Variable | None]:
        """What an optimizer calls one of its variables, and the weight it is for.

        Most say so by position: the slots in a list are for the weights in the order in which the optimizer got them.
        Else the name tells: `dense/kernel` has the slot `dense_kernel_momentum`. Where one weight's path begins
        another's, the longer one is meant.
        """
        name = variable.path.rsplit("/", 1)[-1]
        word = attribute.strip("_") or name
        owner = self._weights.get(id(weight))
        if owner is not None:
            slug = _slug(weight)
            return (name[len(slug) + 1 :] if name.startswith(f"{slug}_") else word), owner
        slug, owner = max(
            (entry for entry in self._slugs if name.startswith(f"{entry[0]}_")),
            key=lambda entry: len(entry[0]),
            default=("", None),
        )
        if owner is not None:
            return name[len(slug) + 1 :], owner
        # A variable that got no name of its own is called by the attribute that holds it.
        return (word if _UNNAMED.fullmatch(name) else name), None

    def _add(
        self,
        variable: Any,
        name: str,
        layer: str,
        category: Category,
        role: str,
        weight: str | None,
        trainable: bool = False,
    ) -> Variable | None:
        handle = getattr(variable._value, "handle", None)
        if handle is None or id(handle) in self._by_handle:
            return None
        shape = tuple(int(size) for size in variable.shape)
        dtype = keras.backend.standardize_dtype(variable._value.dtype)
        unique = name if name == weight else self._unique(name)
        added = Variable(unique, layer, category, role, weight, shape, dtype, size_in_bytes(shape, dtype), trainable)
        self.all.append(added)
        self._by_handle[id(handle)] = added
        return added

    def _unique(self, name: str) -> str:
        self._taken[name] += 1
        return name if self._taken[name] == 1 else self._unique(f"{name}#{self._taken[name]}")


def _slug(weight: Any) -> str:
    """What the names of a weight's slots begin with; a plain `tf.Variable` has a name and no path."""
    return str(getattr(weight, "path", weight.name)).replace("/", "_").replace(":", "_")


def _places(optimizer: Any) -> dict[int, tuple[str, Any]]:
    """For the variables that an optimizer holds, by id: the attribute, and the weight at the same position."""
    weights = getattr(optimizer, "_trainable_variables", [])
    places: dict[int, tuple[str, Any]] = {}
    for attribute, value in vars(optimizer).items():
        if attribute in ("_variables", "_trainable_variables"):
            continue
        if isinstance(value, keras.Variable):
            places.setdefault(id(value), (attribute, None))
        elif isinstance(value, (list, tuple)) and len(value) == len(weights):
            for slot, weight in zip(value, weights, strict=True):
                if isinstance(slot, keras.Variable):
                    places.setdefault(id(slot), (attribute, weight))
    return places
