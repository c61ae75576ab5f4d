"""The largest batch that fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorboard_plugin_memest.memory.batch_search import LARGEST_BATCH_SIZE, largest_that_fits
from tests import samples


class Asked:
    """Estimates whose step needs what `need` says for a batch size; keeps the sizes that were asked for."""

    def __init__(self, need) -> None:
        self.sizes: list[int] = []
        self._need = need
        self._sample = samples.sample_estimate()

    def __call__(self, size: int):
        self.sizes.append(size)
        step = replace(
            self._sample.phases["step"], peak_bytes=self._need(size), peak_range=(self._need(size), self._need(size))
        )
        return replace(self._sample, phases={"step": step})


@pytest.mark.parametrize("start", [1, 8, 500, 100_000])
@pytest.mark.parametrize("limit", [1049, 1050, 1051, 123_456, 9_999_999])
def test_a_straight_line_takes_a_few_estimates(start, limit):
    asked = Asked(lambda size: 1000 + 50 * size)
    assert largest_that_fits(asked, start, limit) == (limit - 1000) // 50
    assert len(asked.sizes) <= 12


@pytest.mark.parametrize(
    "need",
    [
        lambda size: 1000 + size * size,
        lambda size: max(5000, 40 * size),
        lambda size: 2 ** (size // 100).bit_length() * 1000 + size,
        lambda size: 1000 + 50 * (size + size % 3),
    ],
)
@pytest.mark.parametrize("limit", [4999, 5000, 33_333, 70_001])
def test_what_is_found_fits_and_one_more_does_not(need, limit):
    asked = Asked(need)
    found = largest_that_fits(asked, 8, limit)
    assert found == 0 or need(found) <= limit
    assert need(found + 1) > limit
    assert len(asked.sizes) == len(set(asked.sizes)) <= 40


def test_none_fits():
    assert largest_that_fits(Asked(lambda size: 1000 + size), 64, 1000) == 0


def test_what_does_not_grow_ends_at_the_largest():
    assert largest_that_fits(Asked(lambda size: 1000), 3, 1000) == LARGEST_BATCH_SIZE


def test_the_whole_range_has_to_fit():
    asked = Asked(lambda size: 100 * size)

    def ranged(size: int):
        made = asked(size)
        step = replace(made.phases["step"], peak_range=(100 * size, 150 * size))
        return replace(made, phases={"step": step})

    assert largest_that_fits(ranged, 4, 3000) == 20


@pytest.mark.parametrize("limit", [4_000, 1_000_000])
def test_where_all_but_variables_grows_with_the_batch_the_second_guess_is_right(limit):
    asked = Asked(lambda size: 1000 + 50 * size)

    def divided(size: int):
        made = asked(size)
        step = made.phases["step"]
        held = [one for one in step.live_at_peak if one.variable][:1]
        live = (replace(held[0], bytes=1000), replace(held[0], bytes=50 * size, variable=None))
        subject = replace(made.subject, batch_size=size)
        return replace(made, subject=subject, phases={"step": replace(step, live_at_peak=live)})

    found = (limit - 1000) // 50
    assert largest_that_fits(divided, 900, limit) == found
    assert asked.sizes == [900, found, found + 1]
