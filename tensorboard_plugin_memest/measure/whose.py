"""Whose an allocation was, told by the op's name, the tensor's shape and the estimate. No TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo, Phase
from tensorboard_plugin_memest.memory.item import Item
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
_ASSIGNS = re.compile(r"(?:Resource)?(?:Assign|Scatter)\w*")


def find_whose(op: str | None, shape: tuple[int, ...] | None, phase: str | None, estimate: Estimate | None) -> Whose:
    """Whose the tensor of `shape` is that `op` asked for; see `Owners`."""
    return Owners(estimate, phase).find(op, shape)


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
        self._items = _items(estimate, phase)
        self._by_name: dict[str, list[Item]] = {}
        self._by_plain_name: dict[str, list[Item]] = {}
        self._shapes_of: dict[str, set[tuple[int | None, ...] | None]] = {}
        for item in self._items:
            self._by_name.setdefault(item.name, []).append(item)
            self._by_plain_name.setdefault(plain_name(item.name), []).append(item)
            self._shapes_of.setdefault(item.layer, set()).add(item.shape)
        self._shape_of = {item.variable: item.shape for item in self._items if item.role == "weight"}
        steps = _steps(estimate, phase)
        self._makers = _Noted(one.owners for one in steps)
        self._heirs = _Noted(one.heirs for one in steps)
        self._weights = _weights_by_shape(self._items)

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
        known = self._same_op(name, shape)
        if known is not None:
            return Whose(known.layer, known.category, known.role, known.variable)
        owner = (self._noted(self._heirs, name, shape) if lives else None) or self._noted(self._makers, name, shape)
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

    def _same_op(self, name: str, shape: tuple[int, ...] | None) -> Item | None:
        """The item that an op of that name made, its root scope's number aside: that depends on what ran before."""
        same = self._by_name.get(name) or ("/" in name and self._by_plain_name.get(plain_name(name))) or ()
        return next((item for item in same if shape is None or item.shape == shape), None)

    def _noted(self, noted: _Noted, name: str, shape: tuple[int, ...] | None) -> Whose | None:
        """The owner noted for an op; None if it has none, or only some whose variables have other shapes."""
        return next(
            (one for one in noted.of(name) if shape is None or self._shape_of.get(one.variable, shape) == shape), None
        )


class _Noted:
    """What the phases of an estimate note of ops, those that matter most first."""

    def __init__(self, phases: Iterable[Mapping[str, Whose]]) -> None:
        self._phases = [(one, {plain_name(op): whose for op, whose in one.items()}) for one in phases if one]

    def of(self, name: str) -> Iterator[Whose]:
        """What is noted of an op, its root scope's number aside."""
        for exact, plain in self._phases:
            found = exact.get(name) or (plain.get(plain_name(name)) if "/" in name else None)
            if found is not None:
                yield found


def _steps(estimate: Estimate | None, phase: str | None) -> list[Phase]:
    """The phases that run a step's ops, that of the name `phase` first; none if it is building."""
    if estimate is None or phase == "build":
        return []
    return sorted((one for one in estimate.phases.values() if one.name != "build"), key=lambda one: one.name != phase)


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
