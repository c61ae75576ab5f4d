"""A change that is worth trying, and why it did not help where it does not."""

from __future__ import annotations

from dataclasses import dataclass

from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.units import format_bytes

# A layer with at least this share of all parameters, or of the peak, is worth changing.
WORTH_CHANGING = 0.1


@dataclass(frozen=True)
class Proposal:
    """A change that may help.

    Attributes:
        name: short and unique.
        kind: what it changes; of two with the same kind only one makes sense at a time.
        title: what to do.
        change: the change.
        cost: what it costs.
        code: the code.
        effort: how much it asks for: 0 for a line that changes nothing about the result, 1 for one that needs tuning, 2
            for another model.
    """

    name: str
    kind: str
    title: str
    change: Change
    cost: str
    code: str
    effort: int


def why_not(proposal: Proposal, estimate: Estimate, after: Estimate) -> str:
    """Why a change saves nothing, from what is alive at the peak."""
    held = estimate.peak_phase.categories
    fixed = sum(held.get(one, 0) for one in (Category.WEIGHTS, Category.GRADIENTS, Category.OPTIMIZER_SLOTS))
    activations = held.get(Category.ACTIVATIONS, 0)
    worse = _worse(estimate, after)
    peak = format_bytes(estimate.peak_bytes)
    if proposal.kind == "precision":
        shrink = after.peak_phase.categories.get(Category.ACTIVATIONS, 0) <= activations
        halved = f"only activations, {format_bytes(activations)}, are halved, and each" if shrink else "each"
        return (
            f"weights, gradients and slots stay float32, {format_bytes(fixed)} of {peak}; {halved} weight gets a "
            f"half-precision copy while it is used.{worse}"
        )
    if proposal.kind == "recomputation" and fixed < activations:
        return f"a layer needs as much for itself when it runs again, and that is what the peak of {peak} is.{worse}"
    if proposal.kind in ("batch", "recomputation"):
        inputs = held.get(Category.INPUTS, 0)
        return (
            f"activations and the batch are only {format_bytes(activations + inputs)} of {peak}; weights, gradients "
            f"and slots are {format_bytes(fixed)} whatever the batch.{worse}"
        )
    if proposal.kind == "optimizer":
        slots = held.get(Category.OPTIMIZER_SLOTS, 0) - after.peak_phase.categories.get(Category.OPTIMIZER_SLOTS, 0)
        return f"it saves {format_bytes(max(0, slots))} of slots at a peak of {peak}.{worse}"
    first, later = (after.phases[name].peak_bytes if name in after.phases else 0 for name in ("first_step", "step"))
    if proposal.kind == "compiler" and first > later:
        return (
            f"the first step, which creates the optimizer's variables, peaks at {format_bytes(first)}, later ones at "
            f"{format_bytes(later)}.{worse}"
        )
    return f"it touches little of what is alive at the peak of {peak}.{worse}"


def _worse(before: Estimate, after: Estimate) -> str:
    """Where a change needs more memory, and how much; nothing if it hardly does."""
    was, now = before.peak_phase.categories, after.peak_phase.categories
    grown = max(Category, key=lambda one: now.get(one, 0) - was.get(one, 0))
    more = now.get(grown, 0) - was.get(grown, 0)
    if more <= 0.01 * before.peak_bytes:
        return ""
    return f" It takes {format_bytes(more)} more of {grown.label}, so the peak is {format_bytes(after.peak_bytes)}."
