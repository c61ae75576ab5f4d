"""Changes tried on a training loop outside Keras: what its step function gets from around it is changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.advise.levers import batch_changes, optimizer_changes
from tensorboard_plugin_memest.advise.proposal import Proposal
from tensorboard_plugin_memest.memory.estimate import Estimate


class LoopOrigin(Protocol):
    """What the estimate of a step function was made of."""

    def optimizers(self) -> list[object]:
        """The Keras optimizers that the step function uses."""

    def varied(self, batch_size: int | None, optimizer: Callable[[], object] | None) -> Estimate:
        """The estimate for another batch size, or with other optimizers in place of those it uses."""


class LoopWorkshop:
    """The place where changes are tried on one step function.

    Args:
        origin: what the estimate was made of.
        estimate: the step as it is.
    """

    notes = (
        "Of a step function the batch and its Keras optimizers can be changed from outside. For changes to a model "
        "that it trains ask memest.estimate(model, ...).advice(limit).",
    )

    seconds = 0.0  # steps of functions are traced quickly

    def __init__(self, origin: LoopOrigin, estimate: Estimate) -> None:
        self._origin = origin
        self._estimate = estimate

    def proposals(self) -> Iterator[Proposal]:
        """What can be changed."""
        optimizers = self._origin.optimizers()
        if optimizers:
            yield from optimizer_changes(optimizers[0])
        yield from batch_changes(self._estimate)

    def begun(self, change: Change) -> Callable[[], Estimate]:
        """The estimate of the step with `change`."""
        made = self._origin.varied(change.batch_size, change.optimizer)
        return lambda: made
