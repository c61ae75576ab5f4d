"""Whether it fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorboard_plugin_memest.memory.units import GIB
from tensorboard_plugin_memest.memory.verdict import judge

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "verdicts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", VECTORS)
def test_the_vectors_the_frontend_is_held_to_as_well(vector):
    verdict = judge(
        {name: (peak, (low, high)) for name, (peak, low, high) in vector["phases"].items()}, vector["limit"]
    )
    assert (verdict.outcome, verdict.margin_bytes) == (vector["outcome"], vector["margin"])
    assert verdict.tightest[0] == vector["phase"]


def one(peak: int, highest: int, limit: int):
    return judge({"step": (peak, (peak - 1, highest))}, limit)


@pytest.mark.parametrize(
    ("limit", "outcome", "fits"),
    [(10, "fits", True), (9, "may not fit", False), (8, "may not fit", False), (7, "does not fit", False)],
)
def test_outcome_at_the_edges(limit, outcome, fits):
    verdict = one(8, 10, limit)
    assert verdict.outcome == outcome
    assert bool(verdict) is fits
    assert verdict.margin_bytes == limit - 8


def test_the_worst_phase_decides():
    verdict = judge({"build": (6, (6, 6)), "first_step": (4, (4, 9)), "step": (3, (3, 3))}, 7)
    assert {name: phase.outcome for name, phase in verdict.phases.items()} == {
        "build": "fits",
        "first_step": "may not fit",
        "step": "fits",
    }
    assert verdict.outcome == "may not fit"
    assert verdict.tightest[0] == "build"


def test_sentences():
    assert one(8 * GIB, 8 * GIB + 1, 10 * GIB).sentence == (
        "Needs 8.00 GiB; the limit is 10.00 GiB: it fits with 2.00 GiB to spare."
    )
    # Building is likely to need most, and a step may need more.
    worst = judge({"build": (8 * GIB, (8 * GIB, 8 * GIB)), "step": (5 * GIB, (5 * GIB, 9 * GIB))}, 10 * GIB)
    assert worst.sentence == (
        "Needs 8.00 GiB while building the model; the limit is 10.00 GiB: it fits with 1.00 GiB to 2.00 GiB to spare."
    )
    assert one(12 * GIB, 12 * GIB, 10 * GIB).sentence == "Needs 12.00 GiB; the limit is 10.00 GiB: 2.00 GiB short."
    may = one(8 * GIB, 11 * GIB, 10 * GIB)
    assert "depends on the order in which the ops run, up to 11.00 GiB" in may.sentence
    assert may.phases["step"].peak_range == (8 * GIB - 1, 11 * GIB)
    build = judge({"build": (3 * GIB, (0, 3 * GIB)), "step": (GIB, (GIB, GIB))}, 2 * GIB)
    assert str(build) == "Needs 3.00 GiB while building the model; the limit is 2.00 GiB: 1.00 GiB short."
