"""A training under other choices, asked by name."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.what_if import WhatIf
from tests.samples import sample_what_if


def test_what_is_not_chosen_is_as_it_is():
    what_if = sample_what_if()
    assert what_if().peak_bytes == 18_492_341_248
    assert what_if(batch_size=2).peak_bytes == 18_592_341_249
    assert what_if(optimizer="SGD", batch_size=2).peak_bytes == 6_484_800_001


def test_it_is_judged_like_any_estimate():
    sgd = sample_what_if()(optimizer="SGD")
    assert not sgd.fits(9_245_760_000)  # building it takes one byte more
    assert sgd.fits(9_245_760_001).outcome == "may not fit"
    assert sgd.fits(9_300_000_000)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"optimizer": "Sgd"}, r"optimizer='Sgd' is none of \('Adam', 'SGD'\)"),
        ({"gpu": "T4"}, "there is no choice 'gpu'"),
        ({"optimizer": "SGD", "mode": "xla"}, "was not estimated: 3 of 8 combinations were left out"),
    ],
)
def test_what_is_not_there_says_what_is(changes, words):
    with pytest.raises(UsageError, match=words):
        sample_what_if()(**changes)


def test_it_can_be_written_down():
    assert WhatIf.from_json(sample_what_if().to_json()) == sample_what_if()
