"""A real `tensorboard` on real event files: every route, both loaders, under a path prefix."""

from __future__ import annotations

import itertools
import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.format import FORMAT
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks
from tensorboard_plugin_memest.memory.timeline import Timeline
from tests.events import content, string_tensor, write_raw
from tests.integration.http import ask, get, is_active, wait_for
from tests.samples import PIPELINE_BYTES, sample_estimate, sample_peaks, sample_profile
from tests.server import tensorboard_process

ESTIMATE = sample_estimate(limit_bytes=20_000_000_001)
OTHER = sample_estimate(model_name="other ß", optimizer="SGD", batch_size=7)
PROFILE = sample_profile(events=5000)
NOTES = ["No GPU is there, so only the CPU was measured."]
RECORDS = 300

# The highest step of 300 is the middle one; after step n the pipeline holds n + 3 bytes more.
STEP_PEAK = 18_400_000_001 - PIPELINE_BYTES - RECORDS // 2 - 3

LOADERS = {"fast": (), "slow": ("--load_fast=false",)}


@pytest.fixture(scope="module")
def logdir(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("logs")
    with RunWriter(place / "as asked+&") as writer:
        writer.write_estimate(OTHER)
        for steps in range(1, RECORDS + 1):
            writer.write_peaks(sample_peaks(steps=steps))
        writer.write_peaks(sample_peaks("GPU:0", steps=2))
        writer.write_profile(PROFILE)
        writer.write_notes(NOTES)
        writer.write_estimate(ESTIMATE)
    with RunWriter(place) as writer:
        writer.write_peaks(sample_peaks())
    with RunWriter(place / "deep" / "run10") as writer:
        writer.write_estimate(OTHER)
    with RunWriter(place / "deep" / "run9") as writer:
        writer.write_estimate(ESTIMATE)
        write_raw(place / "deep" / "run9" / "memest", "peaks/CPU:0", content("peaks"), string_tensor(b"junk"))
        write_raw(place / "deep" / "run9" / "memest", "dream", content("dream", FORMAT + 1), string_tensor(b""))
    # Killed while it wrote its third record, trained anew, and killed again while it wrote the first.
    for steps in (2, 1):
        with RunWriter(place / "killed") as writer:
            for step in range(steps + 1):
                writer.write_peaks(sample_peaks(steps=7 * steps + step))
        newest = max((place / "killed" / "memest").iterdir())
        cut(newest, records=steps)
    return place


def cut(path: Path, records: int) -> None:
    """Ends an event file in the middle of what follows its head and so many records."""
    reader = tf.compat.v1.io.tf_record_iterator(str(path))
    # Each stands between a length, a checksum of it and one of the data.
    ends = list(itertools.accumulate(8 + 4 + len(record) + 4 for record in reader))
    path.write_bytes(path.read_bytes()[: (ends[records] + ends[records + 1]) // 2])


@pytest.fixture(
    params=[
        (),
        ("--load_fast=false",),
        ("--path_prefix", "/x"),
        ("--load_fast=false", "--path_prefix", "/x/y"),
    ],
    ids=["fast", "slow", "prefix", "slow-prefix"],
)
def server(request, logdir, start_tensorboard) -> str:
    address = start_tensorboard(logdir, *request.param)
    if "--path_prefix" in request.param:
        assert address.endswith(f"{request.param[-1]}/")
    wait_for(lambda: ask(address, "runs"), lambda answer: len(answer["runs"]) == 5)
    wait_for(
        lambda: ask(address, "overview", run="as asked+&"),
        lambda answer: answer["estimate"] and answer["estimate"]["subject"]["optimizer"] == "Adam",
    )
    wait_for(lambda: ask(address, "overview", run="deep/run9"), lambda answer: len(answer["problems"]) == 2)
    return address


def test_the_tab_is_there(server):
    assert is_active(server)
    listing = json.loads(get(f"{server}data/plugins_listing")[2])["memest"]
    assert listing["tab_name"] == "Memory"
    module = listing["loading_mechanism"]["module_path"]
    status, content_type, body = get(f"{server}data/{module.partition('data/')[2]}")
    assert (status, content_type) == (200, "text/javascript; charset=utf-8")
    assert b"render" in body


def test_runs(server):
    runs = ask(server, "runs")["runs"]
    assert [run["name"] for run in runs] == [".", "as asked+&", "deep/run9", "deep/run10", "killed"]
    assert runs[1] == {
        "name": "as asked+&",
        "began": pytest.approx(time.time(), abs=3600),
        "model": "sequential",
        "optimizer": "Adam",
        "batch_size": 1,
        "mode": "graph",
        "device": "CPU",
        "peak_bytes": ESTIMATE.peak_bytes,
        "measured_peak_bytes": STEP_PEAK,
        "limit_bytes": 20_000_000_001,
        "crashed": False,
        "problems": [],
    }
    assert (runs[0]["model"], runs[0]["peak_bytes"], runs[0]["measured_peak_bytes"]) == (None, None, 18_400_000_001)
    assert (runs[3]["model"], runs[3]["peak_bytes"]) == ("other ß", OTHER.peak_bytes)
    assert ESTIMATE.peak_bytes % 256 != 0
    assert ESTIMATE.peak_bytes > 2**31


def test_a_run_killed_while_it_wrote_is_told_up_to_there(server):
    def steps():
        answer = ask(server, "overview", run="killed")
        assert answer["problems"] == []
        return [device["steps"] for device in answer["measured"]["devices"]]

    # Of the second training, whose one whole record is of seven steps.
    wait_for(steps, lambda found: found == [7])


def test_overview(server):
    answer = ask(server, "overview", run="as asked+&")
    estimate = answer["estimate"]
    assert estimate["subject"] == ESTIMATE.subject.to_dict()
    assert estimate["peak_bytes"] == ESTIMATE.peak_bytes
    assert estimate["resident_bytes"] == ESTIMATE.resident_bytes
    assert [
        (phase["name"], phase["peak_bytes"], phase["peak_range"], sum(phase["categories"].values()))
        for phase in estimate["phases"]
    ] == [(name, phase.peak_bytes, list(phase.peak_range), phase.peak_bytes) for name, phase in ESTIMATE.phases.items()]
    assert [
        (layer["path"], layer["parameters"], layer["bytes_per_category"], layer["bytes_at_peak"])
        for layer in estimate["layers"]
    ] == [
        (
            layer.path,
            layer.parameters,
            {category.value: size for category, size in layer.bytes_per_category.items()},
            layer.bytes_at_peak,
        )
        for layer in ESTIMATE.layers
    ]
    assert estimate["total"]["bytes_at_peak"] == ESTIMATE.peak_bytes
    assert estimate["assumptions"] == list(ESTIMATE.assumptions)
    assert estimate["dominant"][0]["bytes"] == 6 * 3081920512
    measured = answer["measured"]
    assert (measured["peak_bytes"], measured["total_peak_bytes"]) == (STEP_PEAK, 18_400_000_001)
    assert measured["pipeline_bytes"] == 18_400_000_001 - STEP_PEAK
    assert measured["difference"] == (ESTIMATE.peak_bytes - STEP_PEAK) / STEP_PEAK
    assert measured["phases"]["step"] == STEP_PEAK
    assert [(device["device"], device["steps"]) for device in measured["devices"]] == [("CPU:0", RECORDS), ("GPU:0", 2)]
    assert measured["profiles"][0]["peak_bytes"] == PROFILE.peak_bytes
    assert measured["profiles"][0]["before"] == [item.to_dict() for item in PROFILE.before]
    assert measured["notes"] == NOTES
    assert answer["problems"] == []


@pytest.mark.parametrize("limit", [None, "9.29GiB", str(ESTIMATE.peak_bytes)])
def test_verdict(server, limit):
    parameters = {} if limit is None else {"limit": limit}
    verdict = ask(server, "overview", run="as asked+&", **parameters)["verdict"]
    expected = ESTIMATE.fits(ESTIMATE.limit_bytes if limit is None else int(limit) if limit.isdigit() else limit)
    assert (verdict["limit_bytes"], verdict["margin_bytes"]) == (expected.limit_bytes, expected.margin_bytes)
    assert (verdict["outcome"], verdict["sentence"]) == (expected.outcome, expected.sentence)
    assert {name: phase["margin_bytes"] for name, phase in verdict["phases"].items()} == {
        name: phase.margin_bytes for name, phase in expected.phases.items()
    }


@pytest.mark.parametrize("phase", ["build", "first_step", "step"])
def test_timeline_and_what_is_alive(server, phase):
    expected = ESTIMATE.phases[phase]
    at_peak = ask(server, "moment", run="as asked+&", phase=phase)
    held = [(item["name"], item["all_bytes"]) for group in at_peak["groups"] for item in group["items"]]
    assert at_peak["bytes"] == expected.peak_bytes == sum(size for _, size in held)
    assert {name for name, _ in held} == {item.name for item in expected.live_at_peak}
    for points in (4, 2000):
        answer = ask(server, "timeline", run="as asked+&", phase=phase, points=points)
        assert (answer["peak_bytes"], answer["events"]) == (expected.peak_bytes, len(expected.timeline))
        assert answer["timeline"].items() >= expected.timeline.decimated(points).to_dict().items()
    moment = ask(server, "moment", run="as asked+&", phase=phase, at=1, by="category")
    assert moment["bytes"] == expected.timeline.live_bytes[1] == sum(group["bytes"] for group in moment["groups"])


def test_profile(server):
    identity = ask(server, "overview", run="as asked+&")["measured"]["profiles"][0]["id"]
    answer = ask(server, "profile", run="as asked+&", id=identity)
    assert answer["events"] == 5000
    thinned = PROFILE.timeline.decimated(2000).to_dict() | {"spans": [span.to_dict() for span in PROFILE.steps]}
    assert answer["timeline"].items() >= thinned.items()
    everything = ask(server, "profile", run="as asked+&", id=identity, points=5000)["timeline"]
    assert everything["ticks"] == PROFILE.timeline.ticks
    assert everything["live_bytes"] == PROFILE.timeline.live_bytes


def told(peaks: MeasuredPeaks) -> dict[str, Any]:
    """What of measured peaks is answered: how many replicas share a device is for the comparison alone."""
    return {key: value for key, value in peaks.to_dict().items() if key != "shared_by"}


def test_of_hundreds_of_records_the_last_is_kept(server):
    devices = ask(server, "peaks", run="as asked+&")["devices"]
    assert devices == [told(sample_peaks(steps=RECORDS)), told(sample_peaks("GPU:0", steps=2))]


def test_a_broken_record_is_a_problem_and_no_failure(server):
    answer = ask(server, "overview", run="deep/run9")
    assert answer["estimate"]["peak_bytes"] == ESTIMATE.peak_bytes
    newer, junk = answer["problems"]
    assert f"'dream' could not be read. This record has format {FORMAT + 1}; this memest reads up to {FORMAT}" in newer
    assert "'peaks/CPU:0' could not be read. Its 4 bytes are no peaks" in junk
    assert ask(server, "runs")["runs"][2]["problems"] == [newer, junk]
    assert ask(server, "peaks", run="deep/run9") == {"devices": [], "beside": [], "leaks": []}


@pytest.mark.parametrize(
    ("address", "status", "sentence"),
    [
        ("overview", 400, "needs the parameter 'run'"),
        ("overview?run=deep/run9&limit=lots", 400, "'lots' is not a memory size"),
        ("overview?run=nowhere", 404, "runs that do: '.', 'as asked+&', 'deep/run9', 'deep/run10', 'killed'"),
        ("timeline?run=.&phase=step", 404, "has no estimate"),
        ("timeline?run=deep/run9&phase=step&points=1", 400, "points is at least 4, not 1"),
        ("..%2f..%2f..%2fsetup.py", 404, "no file"),
    ],
)
def test_errors(server, address, status, sentence):
    code, content_type, body = get(f"{server}data/plugin/memest/{address}")
    assert (code, content_type) == (status, "application/json; charset=utf-8")
    assert sentence in json.loads(body)["error"]


@pytest.mark.parametrize("loader", LOADERS)
def test_without_data_there_is_no_tab_until_there_is(tmp_path, loader):
    with tensorboard_process(tmp_path, *LOADERS[loader], "--reload_interval", "1") as server:
        assert not is_active(server)
        assert ask(server, "runs") == {"runs": []}
        with RunWriter(tmp_path / "run") as writer:
            writer.write_notes(["here"])
            wait_for(lambda: is_active(server), bool)
        assert [run["name"] for run in ask(server, "runs")["runs"]] == ["run"]


@pytest.mark.parametrize("loader", LOADERS)
def test_a_run_that_goes_on_and_one_that_is_repeated(tmp_path, loader):
    def peaks() -> list:
        return ask(server, "peaks", run="run")["devices"]

    with tensorboard_process(tmp_path, *LOADERS[loader], "--reload_interval", "1") as server:
        # As in one script: a writer for the whole training, another one meanwhile, and the whole once more.
        for first in (1, 100):
            with RunWriter(tmp_path / "run") as training:
                training.write_peaks(sample_peaks(steps=first))
                wait_for(lambda: ask(server, "runs")["runs"], bool)
                wait_for(peaks, lambda seen, n=first: seen == [told(sample_peaks(steps=n))])
                with RunWriter(tmp_path / "run") as other:
                    other.write_estimate(ESTIMATE)
                for steps in range(first + 1, first + 20):
                    training.write_peaks(sample_peaks(steps=steps))
                wait_for(peaks, lambda seen, n=first + 19: seen == [told(sample_peaks(steps=n))])
        assert ask(server, "overview", run="run")["estimate"]["peak_bytes"] == ESTIMATE.peak_bytes


@pytest.mark.parametrize("loader", LOADERS)
def test_a_large_profile(tmp_path, loader):
    """More than the four MiB that a gRPC message holds where nobody says otherwise, even compressed."""
    rolls = random.Random(1)
    events = 500_000
    levels = [rolls.randrange(2**44) for _ in range(events)]
    levels[123_456] = 2**45 + 1
    timeline = Timeline("ns", sorted(rolls.randrange(10**13) for _ in range(events)), levels, [0] * events, ["op"])
    with RunWriter(tmp_path / "run") as writer:
        writer.write_profile(replace(PROFILE, timeline=timeline))
    (file,) = (tmp_path / "run" / "memest").iterdir()
    assert file.stat().st_size > 4 * 2**20
    with tensorboard_process(tmp_path, *LOADERS[loader]) as server:
        wait_for(lambda: ask(server, "runs")["runs"], bool)
        identity = ask(server, "overview", run="run")["measured"]["profiles"][0]["id"]
        answer = ask(server, "profile", run="run", id=identity)
        assert (answer["events"], answer["peak_bytes"]) == (events, 2**45 + 1)
        assert answer["timeline"]["live_bytes"] == list(timeline.decimated(2000).live_bytes)
