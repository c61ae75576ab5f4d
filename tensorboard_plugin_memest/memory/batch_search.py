"""The largest batch that fits, found with few estimates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorboard_plugin_memest.memory.estimate import Estimate

# More examples than this in a step nobody trains with, and TensorFlow's 32-bit shapes end not far above.
LARGEST_BATCH_SIZE = 2**24

# Guesses on one side of the limit before the middle is tried.
MOST_STREAK = 2


def largest_that_fits(at_batch_size: Callable[[int], Estimate], start: int, limit_bytes: int) -> int:
    """The largest batch size whose estimate fits, with an estimate that fits below and one that does not above.

    Memory grows about linearly with the batch, so each guess is where the line through two sizes meets the limit: the
    two nearest sizes until one fits and another does not, then these two. After the first estimate it is the line from
    what belongs to variables, which are there whatever the batch. Where the guesses stay on one side, they go
    one, two, four ... further, and at last to the middle.

    Args:
        at_batch_size: the estimate for a batch size.
        start: the first size to try.
        limit_bytes: the limit.

    Returns:
        The size; 0 if one example does not fit, LARGEST_BATCH_SIZE if that fits too.
    """
    needs: dict[int, int] = {}
    fits, misses = 0, LARGEST_BATCH_SIZE + 1
    guess = min(max(1, start), LARGEST_BATCH_SIZE)
    streak, last_fitted = 0, None
    while misses - fits > 1:
        estimate = at_batch_size(guess)
        needs[guess] = max(phase.peak_range[1] for phase in estimate.phases.values())
        fitted = bool(estimate.fits(limit_bytes))
        fits, misses = (guess, misses) if fitted else (fits, guess)
        streak, last_fitted = (streak + 1 if fitted is last_fitted else 0), fitted
        if len(needs) == 1:
            guess = min(_as_parts_say(estimate, needs[guess], limit_bytes), 32 * max(1, guess))
        elif misses > LARGEST_BATCH_SIZE:
            # A line that is nearly flat as far as it was seen leads too far at once.
            guess = min(_on_the_line(needs, sorted(needs)[-2:], limit_bytes, 2 * fits), 32 * fits)
        elif fits == 0:
            guess = _on_the_line(needs, sorted(needs)[:2], limit_bytes, misses // 2)
        else:
            guess = _on_the_line(needs, [fits, misses], limit_bytes, (fits + misses) // 2)
            if streak > MOST_STREAK:
                guess = (fits + misses) // 2
            elif streak:
                further = 2 ** (streak - 1)
                guess = max(guess, fits + further) if fitted else min(guess, misses - further)
        guess = min(max(guess, fits + 1), misses - 1)
    return fits


def _as_parts_say(estimate: Estimate, need: int, limit_bytes: int) -> int:
    """The batch size at which the limit is reached if all grows with it that belongs to no variable."""
    size = estimate.subject.batch_size
    phase = max(estimate.phases.values(), key=lambda one: one.peak_range[1])
    fixed = sum(item.bytes for item in phase.live_at_peak if item.variable)
    if need <= fixed:
        return LARGEST_BATCH_SIZE if need <= limit_bytes else 1
    return (limit_bytes - fixed) * size // (need - fixed)


def _on_the_line(needs: dict[int, int], sizes: list[int], limit_bytes: int, otherwise: int) -> int:
    """The last batch size whose need is below the limit, on the line through those of two `sizes` if that rises."""
    if len(sizes) < 2 or needs[sizes[1]] <= needs[sizes[0]]:
        return otherwise
    low, high = sizes
    return low + (limit_bytes - needs[low]) * (high - low) // (needs[high] - needs[low])
