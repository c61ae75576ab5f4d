"""The demo as a newcomer runs it: `python -m demo`, in processes of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from demo.results import Result, read_records, read_result
from demo.runs import RUNS
from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.units import GIB, format_bytes
from tensorboard_plugin_memest.memory.what_if import WhatIf
from tests.conftest import REPOSITORY, Demo

NAMES = [run.name for run in RUNS]
WEIGHT = 6_019_376 * 128 * 4  # the Dense kernel as it was asked for


@pytest.fixture(scope="module")
def results(demo: Demo) -> dict[str, Result]:
    return {name: read_result(demo.runs / name) for name in NAMES}


def _state(directory: Path) -> dict[str, tuple[int, int]]:
    """Every file below `directory` with its identity and time: what changes when one is made anew."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def test_it_leaves_its_four_runs_and_nothing_half_made(demo: Demo) -> None:
    assert sorted(path.name for path in demo.runs.iterdir()) == sorted(NAMES)
    assert not list(demo.work.glob("*.unfinished"))
    assert not list(demo.work.glob("*.old"))


def test_the_run_that_ran_out_needs_five_or_six_copies_of_its_kernel(results: dict[str, Result]) -> None:
    estimate = results["as-asked"].estimate
    assert estimate.subject.parameters == 770_482_865
    assert estimate.subject.optimizer == "Adam"
    assert estimate.subject.batch_size == 1
    assert 5 * WEIGHT < estimate.peak_bytes < 6.2 * WEIGHT
    assert estimate.fits("9.29GiB").outcome == "does not fit"
    assert estimate.fits("9.29GiB").phases["build"].peak_bytes == pytest.approx(8.61 * GIB, rel=0.02)


def test_the_limit_of_the_report_is_recorded(results: dict[str, Result]) -> None:
    assert {result.estimate.limit_bytes for result in results.values()} == {int(9.29 * GIB)}


def test_the_optimizer_without_slots_needs_less(results: dict[str, Result]) -> None:
    assert results["sgd"].estimate.subject.optimizer == "SGD"
    assert 2 * WEIGHT < results["sgd"].estimate.peak_bytes < 3.2 * WEIGHT
    assert results["sgd"].estimate.resident_bytes == pytest.approx(WEIGHT, rel=0.01)


def test_what_ran_out_has_advice_and_other_choices_for_the_tab(demo: Demo) -> None:
    records = read_records(demo.runs / "as-asked")
    (advice,) = [one for one in records if isinstance(one, Advice)]
    (what_if,) = [one for one in records if isinstance(one, WhatIf)]
    assert advice.limit_bytes == int(9.29 * GIB)
    assert advice.combination is not None
    assert what_if.base.optimizer == "Adam"
    # How many there are in the seconds that they are given, the machine decides; the optimizer matters most here.
    assert any(outcome.choices.optimizer != "Adam" for outcome in what_if.outcomes)


@pytest.mark.parametrize("name", ["as-asked", "sgd"])
def test_a_run_that_is_not_trained_says_so_and_has_no_measurement(results: dict[str, Result], name: str) -> None:
    assert results[name].measured_bytes is None
    assert len(results[name].notes) == 1
    assert "Not trained" in results[name].notes[0]


@pytest.mark.parametrize("name", ["small", "fixed"])
def test_the_others_fit_and_were_measured_close_to_the_prediction(results: dict[str, Result], name: str) -> None:
    result = results[name]
    assert result.estimate.fits("9.29GiB").outcome == "fits"
    assert result.measured_bytes is not None
    # Several threads run a step and the pipeline that shares its pool, and not twice in the same order. So weights,
    # slots and a gradient of 116 MiB get chunks that are larger by what the others left: `fixed` was seen 14 % above.
    # How close a prediction is, `make benchmark-accuracy` measures; here it has to be of the run that was made.
    lowest, highest = result.estimate.peak_phase.peak_range
    assert highest < 1.3 * lowest
    assert 0.8 * lowest < result.measured_bytes < 1.3 * highest


def test_trained_runs_were_profiled(demo: Demo) -> None:
    for name in demo.trained:
        assert list((demo.runs / name).rglob("*.xplane.pb"))


def test_it_ends_with_a_table_of_what_the_runs_came_to(demo: Demo, results: dict[str, Result]) -> None:
    for name, result in results.items():
        row = next(line for line in demo.output.splitlines() if re.match(rf"\W*{name} ", line))
        assert format_bytes(result.estimate.peak_bytes) in row
        assert " to ".join(map(format_bytes, result.estimate.peak_phase.peak_range)) in row
        assert result.estimate.fits("9.29GiB").outcome in row
        if result.measured_bytes is None:
            assert "not trained" in row
        else:
            assert format_bytes(result.measured_bytes) in row
            lowest, highest = result.estimate.peak_phase.peak_range
            assert bool(re.search(r"│ +no │", row)) == (lowest <= result.measured_bytes <= highest)


def test_without_a_terminal_it_prints_plain_lines(demo: Demo) -> None:
    assert "\x1b" not in demo.output
    assert re.search(r"^Run small \(.*\): \d+ s$", demo.output, re.MULTILINE)


def test_a_second_time_it_keeps_what_it_made(demo: Demo, results: dict[str, Result]) -> None:
    before = _state(demo.runs)
    command = demo.command("--no-serve", "--phases")
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert "Run small" not in ran.stdout
    assert _state(demo.runs) == before
    # What is asked for beside is a row a run, phase by phase.
    for name, result in results.items():
        _, _, *cells, _ = next(line for line in ran.stdout.splitlines() if line.startswith(f"| `{name}`")).split("|")
        for phase, predicted, measured in zip(("build", "first_step", "step"), cells[:3], cells[3:], strict=True):
            assert float(predicted.split()[0]) == pytest.approx(
                result.estimate.phases[phase].peak_bytes / 2**20, abs=0.05
            )
            assert (measured.strip() != "") == (name in demo.trained)
            if measured.strip():
                assert float(measured) == pytest.approx(result.measured[phase] / 2**20, abs=0.05)


def test_a_demo_that_was_killed_is_completed_by_the_next(tmp_path: Path) -> None:
    runs, work = tmp_path / "runs", tmp_path / "work"
    command = [sys.executable, "-m", "demo", "--no-serve", "--runs", str(runs), "--work", str(work), "--train"]
    killed = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait_for(lambda: (runs / "as-asked").exists() and (work / "small.unfinished").exists(), 120)
    finally:
        # The process and the one it started.
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    assert [path.name for path in runs.iterdir()] == ["as-asked"]
    before = _state(runs / "as-asked")

    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(path.name for path in runs.iterdir()) == sorted(NAMES)
    assert _state(runs / "as-asked") == before
    assert not list(work.glob("*.unfinished"))


def test_runs_of_other_sources_are_made_anew(demo: Demo, tmp_path: Path) -> None:
    runs, work = tmp_path / "runs", tmp_path / "work"
    for name in NAMES:
        (runs / name).mkdir(parents=True)
        stamp = (demo.runs / name / "demo.json").read_text() if name != "sgd" else json.dumps({"made_by": "before"})
        (runs / name / "demo.json").write_text(stamp)
        (runs / name / "memest").symlink_to(demo.runs / name / "memest")
    command = [sys.executable, "-m", "demo", "--no-serve", "--runs", str(runs), "--work", str(work), "--train"]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert re.findall(r"^Run (\S+) .* \.\.\.$", ran.stdout, re.MULTILINE) == ["sgd"]
    assert not (runs / "sgd/memest").is_symlink()
    assert read_result(runs / "sgd").estimate.subject.optimizer == "SGD"


def test_a_run_that_fails_is_told_with_what_it_printed(tmp_path: Path) -> None:
    runs, work = tmp_path / "runs", tmp_path / "work"
    (work / "clips").mkdir(parents=True)  # and no recordings in it
    command = [sys.executable, "-m", "demo", "--no-serve", "--runs", str(runs), "--work", str(work)]
    ran = subprocess.run([*command, "--train", "small"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "Training the run 'small' failed with exit status 1" in ran.stdout
    why = (work / "small.log").read_text().rstrip().splitlines()[-1]
    assert "Error" in why
    assert why in ran.stdout
    assert not (runs / "small").exists()


def test_it_serves_the_tab_and_prints_its_address(demo: Demo) -> None:
    process = subprocess.Popen(
        demo.command("--port", "0"),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Where the tests run behind the scenes Ctrl-C is ignored, and so it would be by what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("The Memory tab: "))
        found = re.fullmatch(
            r"The Memory tab: (http://\S+/)#memest&p\.memest\.run=(\S+)&p\.memest\.limit=(\S+)\n", line
        )
        assert found, line
        assert found[2] == "as-asked"
        assert found[3] == "9.29GiB"
        _wait_for(lambda: len(_runs_served(found[1])) == len(NAMES), 60)
        assert sorted(_runs_served(found[1])) == sorted(NAMES)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()


def _runs_served(address: str) -> list[str]:
    try:
        with urllib.request.urlopen(f"{address}data/plugin/memest/runs", timeout=60) as answer:
            return [run["name"] for run in json.load(answer)["runs"]]
    except OSError:
        return []  # On a busy machine TensorBoard may not answer yet.


def _wait_for(condition, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"This did not happen within {seconds} seconds."
        time.sleep(0.05)
