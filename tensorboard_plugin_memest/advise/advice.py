"""Advice for one training and one limit: every lever is pulled, the result estimated, ranked and explained."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.advise.levers import smaller_batch
from tensorboard_plugin_memest.advise.proposal import Proposal, why_not
from tensorboard_plugin_memest.estimation.deadline import TimeIsUp, check_deadline, deadline
from tensorboard_plugin_memest.estimation.xla.compilation import compilers
from tensorboard_plugin_memest.memory.advice import Advice, Combination, Lever
from tensorboard_plugin_memest.memory.batch_search import largest_that_fits
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError, reason_of
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.units import format_bytes

# What saves less of the peak than this does not help: another use of the pool's chunks alone can save as much.
WORTH_TELLING = 0.05
# Sets of changes that are tried: what saves most goes first, and each costs an estimate.
MOST_SETS = 8
# Changes whose step was traced and is being compiled or optimized: each holds its graph. Where time is short, the first
# has to be done soon.
MOST_WAITING = 4
MOST_WAITING_IN_TIME = 1
LARGEST_SET = 3
# Share of the time that there is in which the largest batch is looked for, before anything else.
FOR_BATCHES = 0.4


class Workshop(Protocol):
    """Where changes are tried on a training.

    Attributes:
        notes: why some could not be; sentences.
        seconds: that the estimate of the training as it is took.
    """

    @property
    def seconds(self) -> float: ...

    @property
    def notes(self) -> Sequence[str]: ...

    def proposals(self) -> Iterable[Proposal]:
        """The changes worth trying."""

    def begun(self, change: Change) -> Callable[[], Estimate]:
        """Begins the estimate of the training with `change`; what is returned waits for it."""


def advice_for(estimate: Estimate, limit_bytes: int, workshop: Workshop, seconds: float | None = None) -> Advice:
    """Advice for the training that `estimate` is of.

    Args:
        estimate: the training as it is.
        limit_bytes: what it should fit into.
        workshop: where changes to it are tried.
        seconds: how long it may take; None for as long as it takes.
    """
    with compilers():
        return _advice(estimate, limit_bytes, workshop, _Time(seconds))


class _Time:
    """The time that there is.

    Args:
        seconds: how much, from now on; None for any.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._begun = time.monotonic()

    def until(self, share: float = 1) -> contextlib.AbstractContextManager[None]:
        """Inside, what is being estimated ends with `TimeIsUp` when such a share of it is over."""
        return deadline(math.inf if self.seconds is None else self._begun + share * self.seconds)

    def has(self, seconds: float) -> bool:
        """Whether so much of it is left."""
        return self.seconds is None or time.monotonic() + seconds < self._begun + self.seconds


def _advice(estimate: Estimate, limit_bytes: int, workshop: Workshop, time_left: _Time) -> Advice:
    notes: list[str] = []
    batches = _batches(workshop, estimate, limit_bytes, notes, time_left)
    tried = _tried(workshop, notes, time_left)
    size = estimate.subject.batch_size
    if batches.fitting is not None and batches.fitting.subject.batch_size < size:
        tried.append((smaller_batch("largest_batch", batches.fitting.subject.batch_size, size), batches.fitting))
    levers = [_lever(proposal, after, estimate, limit_bytes) for proposal, after in tried]
    helpful = [lever for lever in levers if lever.reason is None]
    helpful.sort(key=lambda lever: (not lever.fits, lever.peak_bytes))
    slots = estimate.peak_phase.categories.get(Category.OPTIMIZER_SLOTS, 0)
    return Advice(
        limit_bytes=limit_bytes,
        peak_bytes=estimate.peak_bytes,
        needs_bytes=_needs(estimate),
        fits=bool(estimate.fits(limit_bytes)),
        levers=tuple(helpful),
        useless=(
            *(lever for lever in levers if lever.reason is not None),
            *([_eight_bits(estimate, limit_bytes)] if slots else []),
            *([] if estimate.subject.strategy else [_replicas(estimate, limit_bytes)]),
        ),
        combination=_combination(workshop, estimate, limit_bytes, tried, helpful, notes, time_left),
        batch_curve=batches.curve,
        max_batch_size=batches.largest,
        notes=(*workshop.notes, *notes),
    )


def _tried(workshop: Workshop, notes: list[str], time_left: _Time) -> list[tuple[Proposal, Estimate]]:
    """The estimate with each change; XLA or Grappler is at work on one while the next is traced."""
    tried: list[tuple[Proposal, Estimate]] = []
    left_out: list[str] = []
    waiting: deque[tuple[Proposal, Callable[[], Estimate]]] = deque()
    most_waiting = MOST_WAITING if time_left.seconds is None else MOST_WAITING_IN_TIME
    # Seconds that the slowest took: to begin with, and to take what came of it.
    beginning = taking = 0.0

    @contextlib.contextmanager
    def trying(proposal: Proposal) -> Iterator[None]:
        try:
            with time_left.until():
                yield
        except TimeIsUp:
            left_out.append(proposal.title)
        except Exception as error:
            notes.append(f"{proposal.title} could not be tried: {reason_of(error)}")

    def take() -> None:
        nonlocal taking
        proposal, result = waiting.popleft()
        began = time.monotonic()
        with trying(proposal):
            tried.append((proposal, result()))
        taking = max(taking, time.monotonic() - began)

    with time_left.until():
        proposals = workshop.proposals()
    for proposal in proposals:
        # What has been begun is worth more when it ends than what is begun too late.
        while waiting and (len(waiting) > most_waiting or not time_left.has(beginning + (len(waiting) + 1) * taking)):
            take()
        began = time.monotonic()
        with trying(proposal):
            check_deadline()
            waiting.append((proposal, workshop.begun(proposal.change)))
        beginning = max(beginning, time.monotonic() - began)
    while waiting:
        take()
    if left_out:
        notes.append(f"After {time_left.seconds:g} seconds these were left out: {'; '.join(left_out)}.")
    return tried


def _lever(proposal: Proposal, after: Estimate, before: Estimate, limit_bytes: int) -> Lever:
    saved = before.peak_bytes - after.peak_bytes
    was, now = before.peak_phase.categories, after.peak_phase.categories
    by_category = {one: was.get(one, 0) - now.get(one, 0) for one in Category}
    host_saved = _host_needs(before) - _host_needs(after)
    helps = host_saved >= WORTH_TELLING * _host_needs(before) > 0
    helps = helps or saved >= WORTH_TELLING * before.peak_bytes or _needs(after) < (1 - WORTH_TELLING) * _needs(before)
    return Lever(
        name=proposal.name,
        title=proposal.title,
        peak_bytes=after.peak_bytes,
        needs_bytes=_needs(after),
        saving_bytes=saved,
        saving_by_category={one: number for one, number in by_category.items() if number},
        fits=bool(after.fits(limit_bytes)),
        cost=proposal.cost,
        code=proposal.code,
        reason=None if helps else why_not(proposal, before, after),
        host_saving_bytes=host_saved,
    )


def _needs(estimate: Estimate) -> int:
    return max(phase.peak_range[1] for phase in estimate.phases.values())


def _host_needs(estimate: Estimate) -> int:
    return max(phase.host_peak_bytes for phase in estimate.phases.values())


def _eight_bits(estimate: Estimate, limit_bytes: int) -> Lever:
    slots = estimate.peak_phase.categories.get(Category.OPTIMIZER_SLOTS, 0)
    return _untried(
        "eight_bit_optimizer",
        "An optimizer with 8-bit slots",
        estimate,
        limit_bytes,
        "Another framework.",
        "# none for Keras on TensorFlow",
        f"no library offers one for Keras on TensorFlow (bitsandbytes and torchao are PyTorch's), so the "
        f"{format_bytes(slots)} of slots at the peak stay in the precision of the weights; Adafactor and Lion keep "
        "fewer of them.",
    )


def _replicas(estimate: Estimate, limit_bytes: int) -> Lever:
    held = estimate.peak_phase.categories
    copies = sum(held.get(one, 0) for one in (Category.WEIGHTS, Category.GRADIENTS, Category.OPTIMIZER_SLOTS))
    return _untried(
        "mirrored_strategy",
        "Several GPUs with MirroredStrategy",
        estimate,
        limit_bytes,
        "Several GPUs.",
        "strategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n    model = build_model()",
        f"every GPU holds its own copy of weights, gradients and slots, {format_bytes(copies)} at the peak; with "
        "the same batch for each GPU it needs what it needs now. Only the batch is shared out.",
    )


def _untried(name: str, title: str, estimate: Estimate, limit_bytes: int, cost: str, code: str, reason: str) -> Lever:
    """A change that leaves everything as it is, which needs no estimate."""
    return Lever(
        name=name,
        title=title,
        peak_bytes=estimate.peak_bytes,
        needs_bytes=_needs(estimate),
        saving_bytes=0,
        saving_by_category={},
        fits=bool(estimate.fits(limit_bytes)),
        cost=cost,
        code=code,
        reason=reason,
    )


@dataclass(frozen=True)
class _Batches:
    """What came of the search for the largest batch that fits.

    Attributes:
        largest: its size; 0 if none fits; None where that was not found.
        fitting: the estimate for the largest that was found to fit; None if none was.
        curve: batch sizes with their peaks in bytes.
    """

    largest: int | None
    fitting: Estimate | None
    curve: tuple[tuple[int, int], ...]


def _batches(workshop: Workshop, estimate: Estimate, limit_bytes: int, notes: list[str], time_left: _Time) -> _Batches:
    size = estimate.subject.batch_size
    curve = {size: estimate.peak_bytes}
    fitting = largest = None

    def at(other: int) -> Estimate:
        nonlocal fitting
        made = estimate if other == size else estimate.at_batch_size(other)
        curve[other] = made.peak_bytes
        if made.fits(limit_bytes) and (fitting is None or other > fitting.subject.batch_size):
            fitting = made
        return made

    try:
        with time_left.until(FOR_BATCHES):
            # It takes some estimates, and time for none is better spent on changes.
            if time_left.seconds is not None and workshop.seconds > FOR_BATCHES * time_left.seconds:
                raise TimeIsUp
            largest = largest_that_fits(at, size, limit_bytes)
    except UsageError as error:
        notes.append(str(error))
        return _Batches(None, None, ())
    except TimeIsUp:
        notes.append(
            f"The largest batch that fits was not found in {FOR_BATCHES:.0%} of {time_left.seconds:g} seconds."
        )
    return _Batches(largest, fitting, tuple(sorted(curve.items())))


def _combination(
    workshop: Workshop,
    estimate: Estimate,
    limit_bytes: int,
    tried: list[tuple[Proposal, Estimate]],
    helpful: list[Lever],
    notes: list[str],
    time_left: _Time,
) -> Combination | None:
    """The fewest changes that make it fit; of as many, those that ask for least."""
    if estimate.fits(limit_bytes):
        return None
    by_name = {proposal.name: proposal for proposal, _ in tried}
    single = [lever for lever in helpful if lever.fits]
    if single:
        best = min(single, key=lambda lever: (by_name[lever.name].effort, lever.peak_bytes))
        return Combination((best.name,), best.peak_bytes, best.needs_bytes)
    ranked = [by_name[lever.name] for lever in sorted(helpful, key=lambda lever: lever.needs_bytes)]
    for count in range(2, LARGEST_SET + 1):
        sets = [
            chosen
            for chosen in itertools.combinations(ranked, count)
            if len({proposal.kind for proposal in chosen}) == count
        ]
        for chosen in sets[:MOST_SETS]:
            change = chosen[0].change
            for other in chosen[1:]:
                change = change.with_also(other.change)
            try:
                with time_left.until():
                    after = workshop.begun(change)()
            except TimeIsUp:
                notes.append(f"Not all sets of changes were tried in {time_left.seconds:g} seconds.")
                return None
            except Exception:
                continue  # two changes that cannot be made together
            if after.fits(limit_bytes):
                return Combination(tuple(one.name for one in chosen), after.peak_bytes, _needs(after))
    return None
