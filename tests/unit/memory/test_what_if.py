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


def test_the_text_has_a_row_for_each_combination_and_a_column_for_each_batch():
    lines = str(sample_what_if()).splitlines()
    assert lines[0] == "Peaks of a training step; as it is: batch 1, Adam, float32, graph."
    rows = [line.split() for line in lines if line.strip().startswith(("Adam", "SGD"))]
    assert rows == [
        ["Adam", "float32", "graph", "17.22", "GiB", "17.32", "GiB"],
        ["SGD", "float32", "graph", "5.95", "GiB", "6.04", "GiB"],
        ["Adam", "float32", "xla", "14.44", "GiB"],
    ]
    assert lines[-1] == "- 3 of 8 combinations were left out, after 60 seconds."
