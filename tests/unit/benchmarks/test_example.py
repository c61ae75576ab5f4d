"""The founding example is run as large as there is room for, and always predicted in full."""

from __future__ import annotations

import pytest
from rich.console import Console

from benchmarks import example

PEAKS = {128: 15_000, 16: 2_000, 8: 1_000}


@pytest.mark.parametrize(
    ("free", "predicted", "run"),
    [
        (15_000, [128], 128),
        (14_999, [128, 16], 16),
        (1_999, [128, 16, 8], 8),
        (999, [128, 16, 8], None),
        (None, [128], 128),
    ],
)
def test_the_largest_that_there_is_room_for_is_run(monkeypatch, free, predicted, run):
    def in_process(function, name, units, *steps, threads):
        if function is example.predict:
            return {"build": (1, 1, 1), "step": (PEAKS[units] - 1, 1, PEAKS[units])}
        return {"build": [units], "step": [units, *steps]}

    monkeypatch.setattr(example, "in_process", in_process)
    monkeypatch.setattr(example, "available_bytes", lambda: None if free is None else free + example.ROOM)
    rows = example._rows("Adam, XLA", 4, Console(quiet=True))
    assert [row["units"] for row in rows] == predicted
    assert [row["units"] for row in rows if row["measured"]] == ([run] if run else [])
    assert rows[-1]["measured"] == (run and {"build": [run], "step": [run, 4]})
    assert example._table(rows).row_count == 2 * len(rows)
