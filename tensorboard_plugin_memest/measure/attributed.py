"""What was alive, with layers and variables: what a profile saw, joined with what the estimate knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tensorboard_plugin_memest.measure.alive import COPY, STEP_LAYER
from tensorboard_plugin_memest.measure.whose import Owners
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, Phase
from tensorboard_plugin_memest.memory.item import RESULT_ROLES, Item
from tensorboard_plugin_memest.memory.op_names import NO_OP

_OPEN = (Category.UNATTRIBUTED, Category.TEMPORARIES, Category.ACTIVATIONS, Category.GRADIENTS)
_INSIDE_PROGRAM = (Category.TEMPORARIES, Category.ACTIVATIONS, Category.GRADIENTS, Category.WORKSPACE)
_UNUSED = "XLA's temporary memory, unused part"


def attributed(
    live: Sequence[Item],
    phase: str | None,
    estimate: Estimate | None,
    failed: tuple[int, ...] | None = None,
) -> tuple[Item, ...]:
    """`live` with layers and variables, as far as names and shapes tell; largest first, of the same sum of bytes.

    A profile knows which op allocated a tensor. Which variable it is that outlives its op, its size tells: as many
    tensors of a size as there are variables of it, weights first. The one block in which a compiled step does its work
    is told by its size, too, and taken apart into what the compiler put there at its peak.

    Args:
        live: what was alive.
        phase: in which phase that was; None when unknown.
        estimate: of the training; None without one.
        failed: shape of a tensor that could not be had, so is not there.
    """
    owners = Owners(estimate, phase)
    told = {item.name for item in live if item.layer != STEP_LAYER}
    variables = [item for item in _variables(estimate, phase, failed) if item.name not in told]
    program = _program(estimate, phase)
    found: list[Item] = []
    for item in live:
        if item.layer != STEP_LAYER:
            found.append(item)
            continue
        if program and item.name == NO_OP and item.requested_bytes == sum(part.requested_bytes for part in program):
            found += _opened(item, program)
            program = []
            continue
        same = next((one for one in variables if one.requested_bytes == item.requested_bytes), None)
        if item.category is Category.UNATTRIBUTED and same is not None:
            variables.remove(same)
            found.append(replace(same, bytes=item.bytes))
            continue
        found.append(_owned(item, owners, estimate))
    return tuple(sorted(found, key=lambda item: -item.bytes))


def attributor(phase: str | None, estimate: Estimate | None) -> Callable[[Item], list[Item]]:
    """A function that does the same for one item that is no variable; arguments as for `attributed`."""
    owners, program = Owners(estimate, phase), _program(estimate, phase)
    requested = sum(part.requested_bytes for part in program)

    def attribute(item: Item) -> list[Item]:
        if program and item.name == NO_OP and item.requested_bytes == requested:
            return _opened(item, program)
        return [_owned(item, owners, estimate) if item.layer == STEP_LAYER else item]

    return attribute


def _owned(item: Item, owners: Owners, estimate: Estimate | None) -> Item:
    # Scratch goes with the op; what took over the op's result has nothing to do with it.
    whose = owners.find(item.name, item.shape, lives=item.category is not Category.WORKSPACE)
    # Inputs, scratch and copies are told by how they were allocated; other tensors better by what is estimated.
    is_open = item.category in _OPEN and item.role != COPY
    if whose.category is not None and is_open and (estimate is not None or whose.variable is not None):
        item = replace(item, category=whose.category, role=whose.role or item.role)
    return replace(item, layer=whose.layer or item.layer, variable=whose.variable)


def _variables(estimate: Estimate | None, phase: str | None, failed: tuple[int, ...] | None) -> list[Item]:
    """The variables that can exist in a phase, weights first.

    While the model is built there are no slots, and of the weight that was being made only its initializer's tensors.
    """
    known = (estimate.phases.get("step") or estimate.phases.get("first_step")) if estimate else None
    items = known.live_at_peak if known else ()
    weights = [item for item in items if item.category is Category.WEIGHTS]
    if phase == "build":
        return [item for item in weights if item.shape != failed]
    return [*weights, *(item for item in items if item.category is Category.OPTIMIZER_SLOTS)]


def _program(estimate: Estimate | None, phase: str | None) -> list[Item]:
    """What is in the temporary memory of a compiled step at its peak; empty for a step that is not compiled."""
    if estimate is None or estimate.subject.mode != "xla" or phase == "build":
        return []
    shown: Phase | None = estimate.phases.get(phase or "step")
    return [
        item
        for item in (shown.live_at_peak if shown else ())
        if item.category in _INSIDE_PROGRAM and item.role not in RESULT_ROLES
    ]


def _opened(block: Item, program: Sequence[Item]) -> list[Item]:
    """The parts of a compiled step's block, and what of its chunk they leave unused."""
    parts = [part for part in program if part.name != _UNUSED]
    rest = block.bytes - sum(part.bytes for part in parts)
    requested = block.requested_bytes - sum(part.requested_bytes for part in parts)
    unused = replace(block, name=_UNUSED, category=Category.TEMPORARIES, role="unused", bytes=rest)
    return [*parts, replace(unused, requested_bytes=requested)] if rest else parts
