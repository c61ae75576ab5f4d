"""The table that the demo ends with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo.results import Result, as_table
from demo.runs import RUNS
from tests.samples import sample_estimate


@pytest.mark.parametrize(
    ("measured", "told"), [(900, "-10.0%"), (1000, "no"), (1700, "no"), (2000, "no"), (2100, "+5.0%"), (None, "")]
)
def test_what_was_measured_is_held_against_all_that_can_be(measured, told):
    made = sample_estimate()
    step = replace(made.peak_phase, peak_bytes=1200, peak_range=(1000, 2000))
    estimate = replace(made, phases={"step": step})
    table = as_table({RUNS[0].name: Result(estimate, {} if measured is None else {"step": measured}, ())}, "9.29GiB")
    (row,) = zip(*(column.cells for column in table.columns), strict=True)
    assert row[[column.header for column in table.columns].index("beyond that")] == told
