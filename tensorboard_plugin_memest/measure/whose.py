"""Whose a failed allocation was, told by the op's name, the tensor's shape and the estimate. No TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tensorboard_plugin_memest.measure.op_names import GRADIENT_SCOPE, short_name, without_counter
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo
from tensorboard_plugin_memest.memory.item import Item
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
_ASSIGNS = re.compile(r"(?:Resource)?(?:Assign|Scatter)\w*")


def find_whose(op: str | None, shape: tuple[int, ...] | None, phase: str | None, estimate: Estimate | None) -> Whose:
    """Whose the tensor of `shape` is that `op` asked for.

    Where the estimate knows the op, it says so itself. Otherwise the parts of the op's name name the layer, and the
    shapes of weights tell which one an update or an initializer is about.

    Args:
        op: the op's name, or its type where it ran eagerly.
        shape: dimensions of the tensor.
        phase: `"build"` or another; None when unknown.
        estimate: of the model that was trained; None without one.
    """
    if op is None:
        return Whose()
    name = short_name(op)
    items = _items(estimate, phase)
    known = _same_op(name, shape, items)
    if known is not None:
        return Whose(known.layer, known.category, known.role, known.variable)
    owner = _owner(name, shape, phase, estimate, items)
    if owner is not None:
        return owner
    weight = _weight_of_shape(shape, items)
    if phase == "build":
        owner = Whose(weight.layer, variable=weight.variable or weight.name) if weight else Whose()
        return Whose(owner.layer, Category.TEMPORARIES, "initializer temporary", owner.variable)
    if is_update(name):
        if weight is None:
            return Whose(OPTIMIZER, Category.TEMPORARIES, "update temporary")
        return Whose(weight.layer, Category.TEMPORARIES, "update temporary", weight.variable or weight.name)
    scope = name.removeprefix(f"{GRADIENT_SCOPE}/").partition("/")[0]
    layer = _PARTS.get(without_counter(scope)) or _layer_of(
        name, shape, estimate.layer_infos if estimate else (), items
    )
    if "/" not in name and layer is None:
        # An op that ran eagerly, or one of the step itself.
        return Whose(weight.layer, variable=weight.variable or weight.name) if weight else Whose()
    kind = without_counter(name.rsplit("/", 1)[-1])
    if name.startswith(f"{GRADIENT_SCOPE}/"):
        if weight is not None and (layer is None or weight.layer == layer):
            return Whose(weight.layer, Category.GRADIENTS, "gradient", weight.variable or weight.name)
        return Whose(layer, Category.TEMPORARIES, f"{kind} output, backward")
    return Whose(layer, Category.ACTIVATIONS, f"{kind} output")


def is_update(op: str) -> bool:
    """Whether an op of a step is the optimizer's, by its name."""
    first, _, rest = op.partition("/")
    if first == GRADIENT_SCOPE or not first:
        return False
    return without_counter(first).lower() in _OPTIMIZERS or (
        not rest and _ASSIGNS.fullmatch(without_counter(op)) is not None
    )


def _items(estimate: Estimate | None, phase: str | None) -> list[Item]:
    """Everything alive at the peaks, those of the phase that failed first."""
    if estimate is None:
        return []
    phases = sorted(estimate.phases.values(), key=lambda one: one.name != phase)
    return [item for one in phases if (one.name == "build") == (phase == "build") for item in one.live_at_peak] + [
        item for one in phases if phase == "build" and one.name != "build" for item in one.live_at_peak
    ]


def _same_op(name: str, shape: tuple[int, ...] | None, items: Sequence[Item]) -> Item | None:
    """The item that an op of that name made, its root scope's number aside: that depends on what ran before."""
    same = [item for item in items if item.name == name] or [
        item for item in items if "/" in name and _plain(item.name) == _plain(name)
    ]
    return next((item for item in same if shape is None or item.shape == shape), None)


def _owner(
    name: str, shape: tuple[int, ...] | None, phase: str | None, estimate: Estimate | None, items: Sequence[Item]
) -> Whose | None:
    """The owner that the estimate has noted for an op; None if it has none, or one whose variable has another shape."""
    if estimate is None or phase == "build":
        return None
    shapes = {item.variable: item.shape for item in items if item.role == "weight"}
    for one in sorted(estimate.phases.values(), key=lambda one: one.name != phase):
        found = one.owners.get(name) if one.name != "build" else None
        if found is None and "/" in name and one.name != "build":
            found = {_plain(op): whose for op, whose in one.owners.items()}.get(_plain(name))
        if found is not None and (shape is None or shapes.get(found.variable, shape) == shape):
            return found
    return None


def _plain(name: str) -> str:
    parts = name.split("/")
    root = 1 if parts[0] == GRADIENT_SCOPE and len(parts) > 1 else 0
    parts[root] = without_counter(parts[root])
    return "/".join(parts)


def _weight_of_shape(shape: tuple[int, ...] | None, items: Iterable[Item]) -> Item | None:
    """The only weight of that shape; None if there are several, or none. Scalars say nothing."""
    if not shape:
        return None
    found: dict[str, Item] = {}
    for item in items:
        if item.shape == shape and item.variable and item.role in ("weight", "gradient", "initializer temporary"):
            found.setdefault(item.variable, item)
    return next(iter(found.values())) if len(found) == 1 else None


def _layer_of(
    name: str, shape: tuple[int, ...] | None, layers: Sequence[LayerInfo], items: Sequence[Item]
) -> str | None:
    """The layer whose path is in an op's name.

    Scopes get numbers where a name was there before, so `dense_1` in an op's name may be the layer `dense_1`, or
    `dense` called again. A layer that makes tensors of that shape goes first.
    """
    scopes = name.removeprefix(f"{GRADIENT_SCOPE}/").split("/")[:-1]
    if not layers:
        # Without an estimate the scopes themselves are what is known.
        return "/".join(scopes) or None
    shapes_of: dict[str, set[tuple[int | None, ...] | None]] = {}
    for item in items:
        shapes_of.setdefault(item.layer, set()).add(item.shape)
    best: tuple[tuple[bool, int, int], str] | None = None
    for info in layers:
        match = _depth(info.path.split("/"), scopes)
        if match is None:
            continue
        fits = shape is not None and (shape == info.output_shape or shape in shapes_of.get(info.path, ()))
        exact, depth = match
        # Deeper layers know more; of two names the one that needed a number stripped is likelier where the model's did.
        rank = (fits, depth, exact)
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
