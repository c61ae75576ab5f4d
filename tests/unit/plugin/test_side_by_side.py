"""Runs held against each other."""

from __future__ import annotations

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.plugin.reader import RunRecords
from tensorboard_plugin_memest.plugin.side_by_side import side_by_side
from tensorboard_plugin_memest.plugin.views import overview
from tests.samples import KERNEL_BYTES, sample_estimate, sample_peaks

LIMIT = 20_000_000_000


def compared(*records: RunRecords) -> dict:
    return side_by_side([overview(record, LIMIT) for record in records])


def test_every_figure_is_held_against_the_first_run():
    adam, sgd = sample_estimate(), sample_estimate(optimizer="SGD")
    answer = compared(RunRecords("adam", adam, peaks=[sample_peaks()]), RunRecords("sgd", sgd))
    assert [run["name"] for run in answer["runs"]] == ["adam", "sgd"]
    assert [run["verdict"]["outcome"] for run in answer["runs"]] == [adam.fits(LIMIT).outcome, sgd.fits(LIMIT).outcome]
    predicted, measured, resident = answer["peaks"]
    assert predicted["values"] == [adam.peak_bytes, sgd.peak_bytes]
    assert predicted["differences"] == [0, sgd.peak_bytes - adam.peak_bytes] == [0, -4 * KERNEL_BYTES]
    assert measured["values"][0] is not None
    assert (measured["values"][1], measured["differences"][1]) == (None, None)
    assert resident["differences"][1] == -2 * KERNEL_BYTES
    assert [row["name"] for row in answer["phases"]] == ["build", "first_step", "step"]
    assert answer["phases"][0]["differences"] == [0, 0]
    slots = next(row for row in answer["categories"] if row["name"] == "optimizer_slots")
    assert slots["values"] == [2 * KERNEL_BYTES, 0]
    for row, run in zip(zip(*(row["values"] for row in answer["categories"]), strict=True), (adam, sgd), strict=True):
        assert sum(row) == run.peak_bytes
    assert [run["bytes_per_category"] for run in answer["runs"]] == [
        {category.value: held for category, held in run.peak_phase.categories.items()} for run in (adam, sgd)
    ]
    assert Category.OPTIMIZER_SLOTS.value not in answer["runs"][1]["bytes_per_category"]


def test_facts_say_where_runs_differ():
    answer = compared(
        RunRecords("a", sample_estimate()), RunRecords("b", sample_estimate(batch_size=2)), RunRecords("none")
    )
    facts = {fact["name"]: (fact["values"], fact["differs"]) for fact in answer["facts"]}
    assert facts["batch_size"] == ([1, 2, None], True)
    assert facts["keras"] == (["3.15.1", "3.15.1", None], True)
    two = compared(RunRecords("a", sample_estimate()), RunRecords("b", sample_estimate(batch_size=2)))
    assert {fact["name"] for fact in two["facts"] if fact["differs"]} == {"batch_size"}


def test_layers_are_joined_by_path_with_the_largest_change_first():
    answer = compared(RunRecords("a", sample_estimate()), RunRecords("b", sample_estimate(optimizer="SGD")))
    names = [row["name"] for row in answer["layers"]]
    assert names[0] == "sequential/dense"
    assert answer["layers"][0]["differences"] == [0, -4 * KERNEL_BYTES]
    assert sorted(names) == sorted(layer.path for layer in sample_estimate().layers)


def test_a_run_that_ran_out_of_memory_is_not_only_judged_by_its_estimate():
    crash = Explanation("XLA", "ran out", phase="first_step")
    answer = compared(RunRecords("died", sample_estimate(), crash=crash), RunRecords("lives", sample_estimate()))
    assert [run["verdict"]["outcome"] for run in answer["runs"]] == ["fits"] * 2
    assert [run["crash"] for run in answer["runs"]] == ["The run ran out of memory in the first step.", None]


def test_a_run_without_an_estimate_has_no_figures():
    answer = compared(RunRecords("none"), RunRecords("b", sample_estimate()))
    assert answer["runs"][0]["bytes_per_category"] is None
    assert answer["peaks"][0]["values"] == [None, sample_estimate().peak_bytes]
    assert answer["peaks"][0]["differences"] == [None, None]
    assert answer["layers"][0]["values"][0] is None
