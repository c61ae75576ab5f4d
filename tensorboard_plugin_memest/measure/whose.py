"""Whose an allocation was, told by the op's name, the tensor's shape and the estimate. No TensorFlow."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo, Phase
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.measured import EVALUATE, PREDICT
from tensorboard_plugin_memest.memory.op_names import GRADIENT_SCOPE, plain_name, short_name, without_counter
from tensorboard_plugin_memest.memory.whose import Whose

OPTIMIZER = "(optimizer)"

# Scopes under which Keras' optimizers update; a layer may have such a name only if somebody gave it.
_OPTIMIZERS = frozenset(
    (
        *("adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "ftrl", "lamb", "lion", "muon", "nadam"),
        *("loss_scale_optimizer", "optimizer", "rmsprop", "schedule_free_adamw", "sgd"),
    )
)
# Scopes of what `compile` was given.
_PARTS = {"compile_loss": "(loss)", "compile_metrics": "(metrics)"}
# Keras 2 under TensorFlow 1 had its optimizers in a scope of their own.
_OLD_KERAS = re.compile(r"^training(?:_\d+)?/")
_ASSIGNS = re.compile(r"(?:Resource)?(?:Assign|Scatter)\w*")


def find_whose(op: str | None, shape: tuple[int, ...] | None, phase: str | None, estimate: Estimate | None) -> Whose:
    """Whose the tensor of `shape` is that `op` asked for, or what it is like; see `Owners`."""
    owners = Owners(estimate, phase)
    found = owners.find(op, shape)
    return owners.like(shape) if found == Whose() and shape else found


class Owners:
    """Tells whose tensors are by the ops that asked for them.

    Where the estimate knows the op, it says so itself. Otherwise the parts of the op's name name the layer, and the
    shapes of weights tell which one an update or an initializer is about.

    Args:
        estimate: of the model that was trained; None without one.
        phase: `"build"` or another; None when unknown.
    """

    def __init__(self, estimate: Estimate | None, phase: str | None) -> None:
        self._phase = phase
        self._layers: Sequence[LayerInfo] = estimate.layer_infos if estimate else ()
        self._phases = phases = _phases(estimate, phase)
        items = [item for one in phases for item in one.live_at_peak]
        self._shapes_of: dict[str, set[tuple[int | None, ...] | None]] = {}
        for item in items:
            self._shapes_of.setdefault(item.layer, set()).add(item.shape)
        shape_of = {item.variable: item.shape for item in items if item.role == "weight"}
        self._told = [_Told(one, shape_of) for one in phases]
        self._weights = _weights_by_shape(items)

    def find(self, op: str | None, shape: tuple[int, ...] | None, *, lives: bool = False) -> Whose:
        """Whose a tensor is.

        Args:
            op: the name of the op that asked for it, or its type where it ran eagerly; None when unknown.
            shape: dimensions of the tensor; None when unknown.
            lives: whether it is alive for longer than its op. By the peak others may have taken it over, as a profile,
                which knows who allocated, does not tell.
        """
        if op is None:
            return Whose()
        name = short_name(op)
        told = (one.find(name, shape, lives=lives) for one in self._told)
        owner = next((one for one in told if one is not None), None)
        if owner is not None:
            return owner
        weight = self._weights.get(shape) if shape else None
        if self._phase == "build":
            owner = Whose(weight.layer, variable=weight.variable or weight.name) if weight else Whose()
            return Whose(owner.layer, Category.TEMPORARIES, "initializer temporary", owner.variable)
        if is_update(name):
            if weight is None:
                return Whose(OPTIMIZER, Category.TEMPORARIES, "update temporary")
            return Whose(weight.layer, Category.TEMPORARIES, "update temporary", weight.variable or weight.name)
        scope = name.removeprefix(f"{GRADIENT_SCOPE}/").partition("/")[0]
        layer = _PARTS.get(without_counter(scope)) or _layer_of(name, shape, self._layers, self._shapes_of)
        if "/" not in name and layer is None:
            # An op that ran eagerly, or one of the step itself.
            return Whose(weight.layer, variable=weight.variable or weight.name) if weight else Whose()
        kind = without_counter(name.rsplit("/", 1)[-1])
        if name.startswith(f"{GRADIENT_SCOPE}/"):
            if weight is not None and (layer is None or weight.layer == layer):
                return Whose(weight.layer, Category.GRADIENTS, "gradient", weight.variable or weight.name)
            return Whose(layer, Category.TEMPORARIES, f"{kind} output, backward")
        return Whose(layer, Category.ACTIVATIONS, f"{kind} output")

    def like(self, shape: tuple[int, ...]) -> Whose:
        """Whose a tensor may be of which only the shape is known: a weight's, or what layers make alike."""
        weight = self._weights.get(shape)
        if weight is not None:
            return Whose(weight.layer, variable=weight.variable or weight.name)
        found: dict[int, list[str]] = {}
        for info in self._layers:
            unlike = None if info.class_name == "InputLayer" else _unlike(info.output_shape, shape)
            if unlike is not None:
                found.setdefault(unlike, []).append(info.path)
        alike = found[min(found)] if found else self._making(shape)
        # Of models and what is in them the innermost.
        paths = [path for path in alike if not any(other.startswith(f"{path}/") for other in alike)]
        if len(paths) < 2:
            return Whose(paths[0] if paths else None)
        named = [*paths[:2], f"{len(paths) - 2} others"] if len(paths) > 3 else paths
        return Whose(role=f"like what {', '.join(named[:-1])} and {named[-1]} make")

    def _making(self, shape: tuple[int, ...]) -> list[str]:
        """The layers that make a tensor of `shape` on the way, which is not their output."""
        known = {info.path for info in self._layers}
        items = [item for one in self._phases for item in tensors_of(one) if item.shape == shape]
        return list(dict.fromkeys(item.layer for item in items if item.layer in known))


def tensors_of(phase: Phase) -> list[Item]:
    """Everything that a phase was predicted to allocate, alike ones once, as far as that was kept."""
    return list(phase.live_at_peak) if phase.allocations is None else phase.allocations.items


def phase_of_shape(shape: tuple[int, ...] | None, estimate: Estimate | None) -> str | None:
    """The phase that alone makes tensors of `shape`, `"step"` for all of training; None where that tells nothing."""
    if estimate is None or not shape:
        return None
    phases = estimate.phases.values()
    having = {one.name for one in phases if any(item.shape == shape for item in tensors_of(one))}
    if having & {EVALUATE, PREDICT} and len(having) == 1:
        return having.pop()
    # Without others a training step says little.
    others = estimate.phases.keys() & {EVALUATE, PREDICT}
    return "step" if others and having and having <= {"first_step", "step"} else None


def _unlike(made: tuple[int | None, ...] | None, shape: tuple[int, ...]) -> int | None:
    """How little an output is like a tensor of `shape`: 0 if it has that; None if it is not like it at all."""
    if made is None or len(made) < 2 or None in made:
        return None
    sizes = [size for size in made if size is not None]
    if made == shape:
        return 0
    if len(made) > 2 and (made[0], made[-1], *made[1:-1]) == shape:
        return 1  # on GPUs TensorFlow puts channels first
    # Products see all dimensions but the last as one.
    return 2 if made[-1] == shape[-1] and math.prod(sizes) == math.prod(shape) else None


class _Told:
    """What a phase of an estimate tells of ops.

    Args:
        phase: of an estimate.
        shape_of: the shape of each weight, by its path.
    """

    def __init__(self, phase: Phase, shape_of: Mapping[str | None, tuple[int, ...] | None]) -> None:
        self._shape_of = shape_of
        self._alive = _ByName((item.name, item) for item in phase.live_at_peak)
        self._heirs, self._makers = _ByName(phase.heirs.items()), _ByName(phase.owners.items())

    def find(self, name: str, shape: tuple[int, ...] | None, *, lives: bool) -> Whose | None:
        """Whose the tensor is, as for `Owners.find`; None where the phase does not have such an op."""
        for item in self._alive.of(name):
            if shape is None or item.shape == shape:
                return Whose(item.layer, item.category, item.role, item.variable)
        for noted in (self._heirs, self._makers) if lives else (self._makers,):
            for owner in noted.of(name):
                # An op of that name is another one if what it is noted to be of has another shape.
                if shape is None or self._shape_of.get(owner.variable, shape) == shape:
                    return owner
        return None


_Kept = TypeVar("_Kept")


class _ByName(Generic[_Kept]):
    """What is kept for ops by name, their root scope's number aside: that depends on what ran before."""

    def __init__(self, kept: Iterable[tuple[str, _Kept]]) -> None:
        self._exact: dict[str, list[_Kept]] = {}
        self._plain: dict[str, list[_Kept]] = {}
        for op, one in kept:
            self._exact.setdefault(op, []).append(one)
            self._plain.setdefault(plain_name(op), []).append(one)

    def of(self, name: str) -> Sequence[_Kept]:
        return self._exact.get(name) or ("/" in name and self._plain.get(plain_name(name))) or ()


def _phases(estimate: Estimate | None, phase: str | None) -> list[Phase]:
    """The phases whose ops may be meant, that of the name `phase` first; only building has ops of its own."""
    if estimate is None:
        return []
    phases = sorted(estimate.phases.values(), key=lambda one: one.name != phase)
    if phase != "build":
        return [one for one in phases if one.name != "build"]
    return [one if one.name == phase else replace(one, owners={}, heirs={}) for one in phases]


def is_update(op: str) -> bool:
    """Whether an op of a step is the optimizer's, by its name."""
    first, _, rest = _OLD_KERAS.sub("", op).partition("/")
    if first == GRADIENT_SCOPE or not first:
        return False
    return without_counter(first).lower() in _OPTIMIZERS or (
        not rest and _ASSIGNS.fullmatch(without_counter(op)) is not None
    )


def _weights_by_shape(items: Iterable[Item]) -> dict[tuple[int, ...], Item]:
    """For each shape the only weight that has it. Scalars say nothing."""
    found: dict[tuple[int, ...], dict[str, Item]] = {}
    for item in items:
        if item.shape and item.variable and item.role in ("weight", "gradient", "initializer temporary"):
            found.setdefault(item.shape, {}).setdefault(item.variable, item)
    return {shape: next(iter(items.values())) for shape, items in found.items() if len(items) == 1}


def _layer_of(
    name: str,
    shape: tuple[int, ...] | None,
    layers: Sequence[LayerInfo],
    shapes_of: Mapping[str, Collection[tuple[int | None, ...] | None]],
) -> str | None:
    """The layer whose path is in an op's name.

    Scopes get numbers where a name was there before, so `dense_1` in an op's name may be the layer `dense_1`, or
    `dense` called again. A layer that makes tensors of that shape goes first.
    """
    scopes = name.removeprefix(f"{GRADIENT_SCOPE}/").split("/")[:-1]
    if not layers:
        # Without an estimate the scopes themselves are what is known.
        return "/".join(scopes) or None
    best: tuple[tuple[bool, int, int, int], str] | None = None
    for info in layers:
        match = _depth(info.path.split("/"), scopes)
        if match is None:
            continue
        fits = shape is not None and (shape == info.output_shape or shape in shapes_of.get(info.path, ()))
        exact, depth = match
        # Deeper layers know more. `dense_1_2` is `dense_1` called again: `dense` would have become `dense_2`.
        rank = (fits, depth, exact, len(info.path))
        if best is None or rank > best[0]:
            best = rank, info.path
    return best[1] if best else None


def _depth(path: Sequence[str], scopes: Sequence[str]) -> tuple[int, int] | None:
    """How many parts of `path` the scopes spell out exactly, and how many there are; None if they do not have them."""
    exact, position = 0, 0
    for part in path:
        bare = part.partition("#")[0]
        while position < len(scopes) and not (
            scopes[position] == bare or re.fullmatch(rf"{re.escape(bare)}(?:_\d+)+", scopes[position])
        ):
            position += 1
        if position == len(scopes):
            return None
        exact += scopes[position] == bare
        position += 1
    return exact, len(path)
