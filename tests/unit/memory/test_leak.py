"""Growth that goes on, and growth that does not."""

from __future__ import annotations

import random

import pytest

from tensorboard_plugin_memest.memory.leak import Leak, find_leak
from tensorboard_plugin_memest.memory.measured import Window

MIB = 2**20


def steps(levels):
    """A window for each step, with what is in use after it."""
    return [Window(n, n, level + 10 * MIB, level, level, 0) for n, level in enumerate(levels)]


def test_steady_growth_has_its_slope_and_begins_at_the_first_step():
    assert find_leak(steps(100 * MIB + 4096 * n for n in range(200))) == Leak(3, 199, 196 * 4096)


def test_a_leak_that_begins_late_is_told_since_then():
    levels = [3 * n * MIB for n in range(10)] + [30 * MIB] * 490 + [30 * MIB + n * MIB for n in range(500)]
    leak = find_leak(steps(levels))
    assert leak.bytes_per_step == pytest.approx(MIB, rel=0.01)
    # Within the 2 % of its growth that may pass before it is noticed.
    assert 500 <= leak.since_step <= 511
    assert leak.until_step == 999


def test_growth_once_an_epoch_is_a_leak_over_epochs():
    leak = find_leak(steps(MIB * (n // 50) for n in range(500)))
    assert leak.bytes_per_step == pytest.approx(MIB / 50, rel=0.15)


def test_noise_hides_no_leak_and_makes_none():
    rng = random.Random(7)
    noisy = [100 * MIB + rng.randrange(8 * MIB) for _ in range(400)]
    assert find_leak(steps(noisy)) is None
    leaking = [level + 100_000 * n for n, level in enumerate(noisy)]
    assert find_leak(steps(leaking)).bytes_per_step == pytest.approx(100_000, rel=0.2)


@pytest.mark.parametrize(
    "levels",
    [
        [],
        [5 * MIB] * 300,
        [0] + [90 * MIB] * 300,  # slots
        [min(n, 30) * MIB for n in range(300)],  # a buffer that fills, and then is full
        [min(n, 260) * MIB for n in range(300)],
        [(n % 50) * MIB for n in range(300)],  # a buffer that is filled anew in each epoch
        [(300 - n) * MIB for n in range(300)],
        [100 * n for n in range(300)],  # crumbs
        [n * MIB for n in range(12)],  # too few to tell
    ],
)
def test_what_comes_to_rest_is_no_leak(levels):
    assert find_leak(steps(levels)) is None


def test_windows_of_many_steps_tell_the_same():
    windows = [Window(n * 100, n * 100 + 99, 0, MIB * n, 0, 0) for n in range(100)]
    leak = find_leak(windows)
    assert leak.bytes_per_step == pytest.approx(MIB / 100)
    assert leak.sentence("GPU:0").startswith(
        f"GPU:0: what stays in use after a step grows by 10.2 KiB a step since step {leak.since_step}, "
    )


def test_what_is_worth_telling_can_be_said():
    windows = steps(MIB * n for n in range(100))
    assert find_leak(windows, least_bytes=98 * MIB) is not None
    assert find_leak(windows, least_bytes=100 * MIB) is None


def test_of_calls_fewer_tell():
    levels = [n * MIB for n in range(9)]
    assert find_leak(steps(levels)) is None
    leak = find_leak(steps(levels), what="calls")
    assert leak.bytes_per_step == MIB
    assert leak.sentence("GPU:0", "calls").startswith(
        "GPU:0: what is in use when fit, evaluate or predict begins grows by 1.0 MiB a call since call 0, by 8.0 MiB "
        "until call 8, and has not come to rest. Models that are made for each call do that: "
    )
    assert find_leak(steps([min(n, 4) * MIB for n in range(9)]), what="calls") is None


def test_batches_of_evaluation_are_no_steps():
    assert "what stays in use after a batch of evaluate grows by 1.0 MiB a batch since batch " in find_leak(
        steps(n * MIB for n in range(20))
    ).sentence("CPU:0", "evaluate")
