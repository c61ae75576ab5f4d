"""The variables of a training run: what each is, whose it is, and how many bytes it holds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.layers import LayerPaths
from tensorboard_plugin_memest.memory.category import Category

OPTIMIZER = "(optimizer)"
LOSS = "(loss)"
METRICS = "(metrics)"
INPUT = "(input)"
STEP = "(step)"

# What Adam's paper and the code of its relatives call the slots that Keras names momentum and velocity.
_ADAM_LETTERS = {"momentum": "m", "velocity": "v", "m": "m", "u": "u", "velocity_hat": "v hat"}
_ADAM_FAMILY = {"Adam", "AdamW", "Adamax", "Nadam", "Lamb"}


@dataclass(frozen=True)
class Variable:
    """A variable that stays between steps.

    Attributes:
        name: layer path and own name, `"dense/kernel"`; an optimizer's slot carries the optimizer's words for it.
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


def size_in_bytes(shape: Iterable[int], dtype: str | tf.DType) -> int:
    """Bytes of a dense tensor; 0 for types without a fixed size (strings, resources, variants)."""
    dtype = tf.as_dtype(dtype)
    if dtype in (tf.string, tf.resource, tf.variant):
        return 0
    size: int = dtype.size
    return math.prod(shape) * size


class Variables:
    """All variables that a model's training keeps, found by handle."""

    def __init__(self, model: keras.Model, paths: LayerPaths, optimizers: list[Any]) -> None:
        self.all: list[Variable] = []
        self._by_handle: dict[int, Variable] = {}
        trainable = {id(variable) for variable in model.trainable_variables}
        self._weights: list[tuple[str, Variable]] = []
        for variable in model.variables:
            self._add_weight(variable, paths, id(variable) in trainable)
        for optimizer in optimizers:
            for variable in optimizer.variables:
                self._add_slot(optimizer, variable)
        for variable in model.metrics_variables:
            self._add(variable, variable.path, METRICS, Category.UNATTRIBUTED, "metric state", None)

    def of_handle(self, handle: Any) -> Variable | None:
        """The variable behind a resource tensor; None if it is none of the model's."""
        return self._by_handle.get(id(handle))

    def add_captured(self, handle: Any, name: str, shape: tuple[int, ...], dtype: str) -> Variable:
        """Takes in a variable that the step uses and the model does not know (a plain tf.Variable)."""
        variable = Variable(
            name, STEP, Category.UNATTRIBUTED, "variable", None, shape, dtype, size_in_bytes(shape, dtype), False
        )
        self.all.append(variable)
        self._by_handle[id(handle)] = variable
        return variable

    def _add_weight(self, variable: Any, paths: LayerPaths, trainable: bool) -> None:
        owner = paths.owner_of(variable)
        layer, own_name = owner or (STEP, variable.path)
        name = f"{layer}/{own_name}"
        if variable.name == "seed_generator_state":
            self._add(variable, name, layer, Category.UNATTRIBUTED, "random state", None)
            return
        added = self._add(variable, name, layer, Category.WEIGHTS, "weight", name, trainable)
        self._weights.append((variable.path.replace("/", "_"), added))

    def _add_slot(self, optimizer: Any, variable: Any) -> None:
        name = variable.path.rsplit("/", 1)[-1]
        weight = self._weight_of_slot(name)
        family = type(getattr(optimizer, "inner_optimizer", optimizer)).__name__
        if weight is None:
            self._add(variable, variable.path, OPTIMIZER, Category.OPTIMIZER_SLOTS, f"{family} {name}", None)
            return
        slug, owner = weight
        slot = name[len(slug) + 1 :]
        word = _ADAM_LETTERS.get(slot, slot) if family in _ADAM_FAMILY else slot.replace("_", " ")
        role = f"{family} {word}"
        self._add(variable, f"{owner.name} ({role})", owner.layer, Category.OPTIMIZER_SLOTS, role, owner.weight)

    def _weight_of_slot(self, name: str) -> tuple[str, Variable] | None:
        # Keras names a slot after its weight's path: `dense/kernel` has the slot `dense_kernel_momentum`. Where one
        # weight's path begins another's, the longer one is meant.
        matches = [entry for entry in self._weights if name.startswith(f"{entry[0]}_")]
        return max(matches, key=lambda entry: len(entry[0]), default=None)

    def _add(
        self,
        variable: Any,
        name: str,
        layer: str,
        category: Category,
        role: str,
        weight: str | None,
        trainable: bool = False,
    ) -> Variable:
        shape = tuple(int(size) for size in variable.shape)
        dtype = keras.backend.standardize_dtype(variable.dtype)
        added = Variable(name, layer, category, role, weight, shape, dtype, size_in_bytes(shape, dtype), trainable)
        self.all.append(added)
        self._by_handle[id(variable.value.handle)] = added
        return added
