"""One training under other batch sizes, optimizers, precisions and modes, and all their combinations."""

from __future__ import annotations

import functools
import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from tensorboard_plugin_memest.advise.change import Change, dtype_policy
from tensorboard_plugin_memest.advise.optimizers import ADAM, OPTIMIZERS, OptimizerChoice
from tensorboard_plugin_memest.advise.workshop import Workshop
from tensorboard_plugin_memest.estimation.mode import EAGER, GRAPH, XLA
from tensorboard_plugin_memest.estimation.model import Origin
from tensorboard_plugin_memest.estimation.xla.compilation import compilers
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.what_if import Choices, Outcome, WhatIf

SIZES = 5
_PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")


def what_if_of(estimate: Estimate, origin: Origin, seconds: float | None) -> WhatIf:
    """The training that `estimate` is of, under other choices.

    Args:
        estimate: the training as it is.
        origin: what it was made of.
        seconds: time after which no further combination is begun; None for all of them.
    """
    with compilers():
        return _Grid(estimate, origin).walked(seconds)


def sizes_around(batch_size: int) -> list[int]:
    """Batch sizes to choose from: the one there is, halves and doubles of it."""
    smaller = [batch_size // 2**power for power in (1, 2) if batch_size % 2**power == 0]
    larger = [batch_size * 2**power for power in range(1, SIZES - len(smaller))]
    return sorted([*smaller, batch_size, *larger])


class _Grid:
    """All combinations, those with fewest changes first."""

    def __init__(self, estimate: Estimate, origin: Origin) -> None:
        subject = estimate.subject
        self._estimate = estimate
        self._origin = origin
        self._workshop = Workshop(origin, estimate)
        self._notes: list[str] = []
        self._origins: dict[Choices, Origin] = {}
        try:
            blueprint = self._workshop.blueprint()
            precision, optimizer = blueprint.dtype_policy, blueprint.optimizer
        except Exception as error:
            self._notes.append(f"Other precisions were not tried: the model cannot be made again ({error}).")
            precision, optimizer = "as it is", None
        others = [choice for choice in (ADAM, *OPTIMIZERS) if optimizer is None or not choice.is_like(optimizer)]
        own = next((choice.title for choice in (ADAM, *OPTIMIZERS) if choice.is_like(optimizer)), subject.optimizer)
        own = own or "as it is"
        self._optimizers: dict[str, OptimizerChoice | None] = {own: None}
        self._optimizers.update({choice.title: choice for choice in others if choice.title != own})
        self._precisions = _PRECISIONS if precision == "float32" else (precision,)
        self._modes = {GRAPH: (GRAPH, XLA), XLA: (XLA, GRAPH), EAGER: (EAGER, GRAPH, XLA)}[subject.mode]
        fixed = origin.fixed_batch_sizes
        self._sizes = [subject.batch_size] if fixed else sizes_around(subject.batch_size)
        self._base = Choices(subject.batch_size, own, precision, subject.mode)

    def walked(self, seconds: float | None) -> WhatIf:
        """The outcomes of as many combinations as there is time for."""
        begun = time.monotonic()
        outcomes: list[Outcome] = []
        waiting: deque[tuple[Choices, Callable[[], Outcome]]] = deque()
        failed: set[Choices] = set()
        left_out = 0

        def note(choices: Choices, error: Exception) -> None:
            failed.add(choices)
            what = f"{choices.optimizer}, {choices.precision}, {choices.mode}"
            self._notes.append(f"{what} could not be estimated: {type(error).__name__}: {_first_line(error)}")

        def take() -> None:
            choices, finish = waiting.popleft()
            if choices in failed:
                return
            try:
                outcomes.append(finish())
            except Exception as error:
                note(choices, error)

        for choices, sizes in self._tasks():
            if (outcomes or waiting) and seconds is not None and time.monotonic() - begun > seconds:
                left_out += len(sizes)
                continue
            for size in sizes:
                if choices in failed:
                    break
                try:
                    waiting.append((choices, self._begun(choices, size)))
                except Exception as error:
                    while waiting:
                        take()
                    note(choices, error)
                # While one is traced, Grappler or XLA is at work on the one before.
                if len(waiting) > 1:
                    take()
        while waiting:
            take()
        if left_out:
            self._notes.append(
                f"{left_out} of {left_out + len(outcomes)} combinations were left out, after {seconds:g} seconds."
            )
        outcomes.sort(key=lambda outcome: outcome.choices.changes_from(self._base))
        return WhatIf(
            base=self._base,
            batch_sizes=tuple(self._sizes),
            optimizers=tuple(self._optimizers),
            precisions=tuple(self._precisions),
            modes=self._modes,
            outcomes=tuple(outcomes),
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _tasks(self) -> list[tuple[Choices, list[int]]]:
        """What to estimate, in order: choices but for the batch size, and some batch sizes.

        In graph mode other batch sizes follow from what was traced; XLA has to be asked for each.
        """
        size = self._base.batch_size
        others = [other for other in self._sizes if other != size]
        tasks = []
        for mode, precision, optimizer in itertools.product(self._modes, self._precisions, self._optimizers):
            choices = Choices(size, optimizer, precision, mode)
            changes, asks = choices.changes_from(self._base), mode == XLA
            tasks.append((changes, asks, choices, [size] if asks else [size, *others]))
            if asks and others:
                tasks.append((changes + 1, asks, choices, others))
        # Sorting keeps the order of those with as many changes.
        tasks.sort(key=lambda task: task[:2])
        return [(choices, sizes) for _, _, choices, sizes in tasks]

    def _begun(self, choices: Choices, size: int) -> Callable[[], Outcome]:
        """Begins the estimate of `choices` with a batch of `size`; what is returned waits for it."""
        origin = self._origins.get(choices)
        finish: Callable[[], Estimate] | None = None  # for what has been estimated already
        if origin is not None:
            finish = origin.begun_at_batch_size(size)
        elif choices == self._base:
            self._origins[choices] = self._origin
        else:
            origin = self._workshop.origin_of(self._change(choices), one_size=len(self._sizes) == 1)
            self._origins[choices] = origin
            finish = origin.begun()

        def finished() -> Outcome:
            made = finish() if finish is not None else self._estimate
            return Outcome(
                choices=replace(choices, batch_size=size),
                peak_bytes=made.peak_bytes,
                phases={name: (phase.peak_bytes, phase.peak_range) for name, phase in made.phases.items()},
                categories=made.peak_phase.categories,
            )

        return finished

    def _change(self, choices: Choices) -> Change:
        optimizer = self._optimizers[choices.optimizer]
        is_other = choices.precision != self._base.precision
        return Change(
            optimizer=None if optimizer is None else optimizer.make,
            around=(functools.partial(dtype_policy, choices.precision),) if is_other else (),
            mode=choices.mode,
        )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
