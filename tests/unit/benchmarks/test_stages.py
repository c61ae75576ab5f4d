"""Measuring and estimating, one after another."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from benchmarks.configuration import Configuration
from benchmarks.loops import LOOPS
from benchmarks.models import CONFIGURATIONS
from benchmarks.processes import ProcessError
from benchmarks.stages import chosen, parser_of, run_stages


def build():
    raise AssertionError("Nothing is built here.")


FIRST, SECOND = (Configuration(name, "family", build, 4) for name in ("first", "second"))


@pytest.fixture
def run(tmp_path):
    """Runs both stages of two trainings, with the arguments given; gives the rows, the calls, and what was said."""

    def running(*arguments: str, failing: str = ""):
        calls = []

        def measure(store, trained, setting):
            record = store.record(trained, setting)
            while len(record["processes"]) < 2:
                if trained.name == failing:
                    raise ProcessError("it died")
                calls.append(f"measure {trained.name}")
                record = {**record, "processes": [*record["processes"], len(record["processes"]) + 10]}
                yield record, ""

        def compare(record, trained, setting):
            calls.append(f"compare {trained.name}")
            return {"name": trained.name, "seconds": 1.0, "phases": {"step": {"error": sum(record["processes"]) / 100}}}

        parser = parser_of("", measured=str(tmp_path / "kept.json"), result=str(tmp_path / "rows.json"), worst=3)
        console = Console(width=200, record=True)
        pairs = [(one, "one") for one in (FIRST, SECOND)]
        rows = run_stages(console, parser.parse_args(arguments), pairs, measure, compare)
        return rows, calls, console.export_text()

    return running


def test_what_was_measured_is_kept_and_measured_once(run, tmp_path):
    rows, calls, _ = run()
    assert calls == ["measure first"] * 2 + ["measure second"] * 2 + ["compare first", "compare second"]
    assert [row["phases"]["step"]["error"] for row in rows] == [0.21, 0.21]
    assert json.loads((tmp_path / "rows.json").read_text())["rows"] == rows
    assert run()[1] == ["compare first", "compare second"]


def test_one_stage_can_be_run_alone(run):
    rows, calls, said = run("--only", "estimate")
    assert (rows, calls) == ([], [])
    assert "leave out --only estimate" in said
    assert run("--only", "measure")[:2] == ([], ["measure first"] * 2 + ["measure second"] * 2)
    assert run("--only", "estimate")[1] == ["compare first", "compare second"]


def test_a_process_that_fails_ends_nothing(run):
    rows, _, said = run(failing="first")
    assert [row["name"] for row in rows] == ["second"]
    assert "first, one: it died" in said


def test_loops_and_configurations_are_chosen_by_their_names():
    everything = [*CONFIGURATIONS.values(), *LOOPS.values()]
    assert len({one.name for one in everything}) == len(everything)
    assert chosen(everything, "own loop: loop: GAN") == [LOOPS["loop: GAN, two tapes"]]
