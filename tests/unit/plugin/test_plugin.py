"""The plugin inside TensorBoard's own application, over HTTP as far as WSGI goes."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
import werkzeug.test
from tensorboard.backend import application
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin

from tensorboard_plugin_memest.log.record import encode
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.comparison import compare
from tensorboard_plugin_memest.plugin.plugin import MemestPlugin
from tests.events import content, string_tensor, write_raw
from tests.samples import (
    DENSE,
    KERNEL_BYTES,
    PIPELINE_BYTES,
    sample_estimate,
    sample_host,
    sample_peaks,
    sample_profile,
    sample_what_if,
)

ROUTES = [
    "runs",
    "compare",
    "overview",
    "timeline",
    "profile",
    "moment",
    "aligned",
    "peaks",
    "host",
    "what_if",
]


@pytest.fixture
def ask(tmp_path, open_logdir):
    """Asks the plugin for an address; gives status and JSON."""
    with RunWriter(tmp_path / "full") as writer:
        writer.write_estimate(sample_estimate(limit_bytes=20_000_000_000))
        writer.write_peaks(sample_peaks())
        writer.write_profile(sample_profile(events=5000))
        writer.write_host(sample_host())
        writer.write_what_if(sample_what_if())
    with RunWriter(tmp_path / "measured") as writer:
        writer.write_peaks(sample_peaks())
    write_raw(tmp_path / "broken" / "memest", "estimate", content("estimate"), string_tensor(b"junk"))
    write_raw(tmp_path / "broken" / "memest", "profile/x", content("profile"), string_tensor(b"junk"))
    provider = open_logdir(tmp_path)
    plugin = MemestPlugin(base_plugin.TBContext(data_provider=provider), tmp_path / "static")
    client = werkzeug.test.Client(application.TensorBoardWSGI([plugin], "/prefix", provider))

    def get(address: str, method: str = "GET") -> tuple[int, dict]:
        response = client.open(f"/prefix/data/plugin/memest/{address}", method=method)
        assert response.headers["Content-Type"] == "application/json; charset=utf-8"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        return response.status_code, json.loads(response.get_data()) if method == "GET" else {}

    get.provider = provider
    return get


def test_what_if(ask):
    status, answer = ask("what_if?run=full")
    sample = sample_what_if()
    assert status == 200
    found = answer["what_if"]
    assert found["base"] == {"batch_size": 1, "optimizer": "Adam", "precision": "float32", "mode": "graph"}
    assert [found[name] for name in ("batch_sizes", "optimizers", "precisions", "modes")] == [
        [1, 2],
        ["Adam", "SGD"],
        ["float32"],
        ["graph", "xla"],
    ]
    assert len(found["outcomes"]) == len(sample.outcomes)
    assert found["outcomes"][2] == {
        "batch_size": 1,
        "optimizer": "SGD",
        "precision": "float32",
        "mode": "graph",
        "peak_bytes": 6_384_800_000,
        "saving_bytes": 18_492_341_248 - 6_384_800_000,
        "phases": {"build": [9_245_760_001] * 3, "step": [6_384_800_000, 6_384_800_000, 9_300_000_000]},
        "categories": {"weights": 3_081_920_512, "activations": 3_302_879_488},
    }
    assert found["notes"] == list(sample.notes)
    assert ask("what_if?run=measured") == (200, {"what_if": None})


def test_host(ask):
    status, answer = ask("host?run=full")
    sample = sample_host()
    assert status == 200
    assert (
        answer["host"]["peak_bytes"] == sample.peak_bytes == sum(stage["bytes"] for stage in answer["host"]["stages"])
    )
    assert answer["host"]["startup_bytes"] == sample.startup_bytes
    assert answer["host"]["slack_bytes"] == sample.slack_bytes
    assert answer["host"]["stages"][0] == sample.stages[0].to_dict()
    assert answer["host"]["levers"][1]["saving_bytes"] == 0
    assert answer["host"]["assumptions"] == list(sample.assumptions)
    assert ask("host?run=measured") == (200, {"host": None})


def test_every_name_of_the_catalogue_is_a_limit(ask):
    status, answer = ask("gpus")
    assert status == 200
    sizes = {gpu["name"]: gpu for gpu in answer["gpus"]}
    assert len(sizes) == len(answer["gpus"]) > 100
    assert sizes["g5.xlarge"]["carries"] == "A10G"
    assert sizes["A10G"]["memory_bytes"] == sizes["g5.xlarge"]["memory_bytes"] == 24 * 2**30 * 15 // 16
    for name in ("RTX 3080 10GB", "p3.2xlarge", "M1 Pro 16GB"):
        judged = ask(f"overview?run=full&limit={quote(name)}")[1]["verdict"]
        assert judged["limit_bytes"] == sizes[name]["usable_bytes"] < sizes[name]["memory_bytes"]


def test_the_list_of_many_runs_is_one_question_and_reads_no_estimate(tmp_path, open_logdir, monkeypatch):
    for n in range(5):
        with RunWriter(tmp_path / f"run{n}") as writer:
            writer.write_estimate(sample_estimate(batch_size=n + 1, limit_bytes=n + 7))
            writer.write_peaks(sample_peaks())
    provider = open_logdir(tmp_path)
    asked = []

    def read_tensors(*args, run_tag_filter, **kwargs):
        asked.append((len(run_tag_filter.runs), sorted(run_tag_filter.tags)))
        return original(*args, run_tag_filter=run_tag_filter, **kwargs)

    original = provider.read_tensors
    monkeypatch.setattr(provider, "read_tensors", read_tensors)
    plugin = MemestPlugin(base_plugin.TBContext(data_provider=provider))
    for _ in range(2):
        runs = plugin.runs_impl(RequestContext(), "")["runs"]
        for n, run in enumerate(runs):
            estimate = sample_estimate(batch_size=n + 1)
            assert (run["name"], run["batch_size"], run["limit_bytes"]) == (f"run{n}", n + 1, n + 7)
            assert run["peak_bytes"] == estimate.peak_bytes
            assert run["measured_peak_bytes"] == compare(estimate, sample_peaks()).step_peak_bytes
    assert asked == [(5, ["headline", "peaks/CPU:0"])]


def test_a_run_whose_headline_is_missing_is_told_by_its_estimate(tmp_path, open_logdir):
    payload = encode(sample_estimate(limit_bytes=5))
    write_raw(tmp_path / "run" / "memest", "estimate", content("estimate"), string_tensor(payload))
    plugin = MemestPlugin(base_plugin.TBContext(data_provider=open_logdir(tmp_path)))
    (run,) = plugin.runs_impl(RequestContext(), "")["runs"]
    assert (run["peak_bytes"], run["limit_bytes"]) == (sample_estimate().peak_bytes, 5)


def test_runs_are_compared_by_one_limit(ask):
    status, answer = ask("compare?run=full&with=measured&with=full&limit=1GiB")
    assert status == 200
    assert [run["name"] for run in answer["runs"]] == ["full", "measured", "full"]
    assert answer["runs"][2]["verdict"]["limit_bytes"] == 2**30
    assert answer["peaks"][0]["differences"] == [0, None, 0]
    assert ask("compare?run=full&with=nowhere")[0] == 404


def test_runs(ask):
    status, answer = ask("runs")
    assert status == 200
    assert [(run["name"], run["peak_bytes"], run["measured_peak_bytes"]) for run in answer["runs"]] == [
        ("broken", None, None),
        # Of an estimated run without what the data pipeline held, 2 + 3 bytes more than at first in step 2.
        ("full", sample_estimate().peak_bytes, 18_400_000_001 - PIPELINE_BYTES - 5),
        ("measured", None, 18_400_000_001),
    ]
    (problem,) = answer["runs"][0]["problems"]
    assert problem.startswith("The record 'estimate' could not be read.")


def test_runs_follow_the_data(ask, tmp_path):
    assert ask("runs")[1]["runs"][2]["peak_bytes"] is None
    with RunWriter(tmp_path / "measured") as writer:
        writer.write_estimate(sample_estimate(batch_size=3))
    ask.provider._multiplexer.Reload()
    assert ask("runs")[1]["runs"][2]["peak_bytes"] == sample_estimate(batch_size=3).peak_bytes


@pytest.mark.parametrize(
    ("limit", "limit_bytes"),
    [("", 20_000_000_000), ("9.29GiB", 9975061544), ("24GB", 24 * 10**9), ("4096", 4096), ("800+MiB", 838860800)],
)
def test_limits(ask, limit, limit_bytes):
    status, answer = ask(f"overview?run=full&limit={limit}")
    assert (status, answer["verdict"]["limit_bytes"]) == (200, limit_bytes)


def test_overview_reads_every_record(ask):
    answer = ask("overview?run=broken")[1]
    assert [problem[:20] for problem in answer["problems"]] == ["The record 'estimate", "The record 'profile/"]
    assert answer["estimate"] is None
    assert ask("overview?run=full")[1]["measured"]["profiles"][0]["id"] == "cpu_bfc@host/2026_01_01_00_00_00"


def test_timeline(ask):
    sample = sample_estimate().phases["step"]
    full = sample.timeline
    answer = ask("timeline?run=full&phase=step")[1]
    assert answer["timeline"] == {
        **full.to_dict(),
        "positions": list(range(len(full))),
        "layers": [None, "sequential/dense", *[None] * (len(full.ops) - 2)],
    }
    del answer["timeline"]
    assert answer == {
        "peak_bytes": sample.peak_bytes,
        "events": len(full),
        "extent": [0, len(full) - 1],
        "peak": {
            "position": full.peak_position,
            "tick": full.peak_position,
            "live_bytes": sample.peak_bytes,
            "op": full.op_at(full.peak_position),
        },
    }
    thin = ask("timeline?run=full&phase=step&points=5")[1]
    assert len(thin["timeline"]["ticks"]) <= 5 < thin["events"]
    assert max(thin["timeline"]["live_bytes"]) == sample_estimate().peak_bytes


def test_a_stretch_of_a_timeline(ask):
    full = sample_profile(events=5000).timeline
    address = "profile?run=full&id=cpu_bfc@host/2026_01_01_00_00_00"
    answer = ask(f"{address}&from=1000001&to=1009001")[1]
    # From event 1000 to 1009, and one more on either side.
    assert answer["timeline"]["positions"] == list(range(999, 1011))
    assert answer["timeline"]["live_bytes"] == full.live_bytes[999:1011]
    assert (answer["events"], answer["extent"]) == (5000, [1, 4999001])
    assert answer["peak"]["position"] == 1250
    thin = ask(f"{address}&from=1000000&to=2000000&points=40")[1]["timeline"]
    assert len(thin["ticks"]) <= 42
    assert max(thin["live_bytes"]) == max(full.live_bytes[1000:2000])
    assert ask(f"{address}&from=9000000")[1]["timeline"]["positions"] == [4999]


@pytest.mark.parametrize("by", ["layer", "op", "category", "shape"])
def test_a_moment(ask, by):
    sample = sample_estimate().phases["step"]
    status, answer = ask(f"moment?run=full&phase=step&at=3&by={by}")
    assert status == 200
    alive = sample.allocations.items_at(3)
    assert len(alive) > 4
    assert (answer["position"], answer["tick"], answer["unit"], answer["by"]) == (3, 3, "op", by)
    assert answer["op"] == sample.timeline.op_at(3)
    assert answer["bytes"] == answer["live_bytes"] == sample.timeline.live_bytes[3] == sum(one.bytes for one in alive)
    assert answer["count"] == len(alive)
    shown = [item["name"] for group in answer["groups"] for item in group["items"]]
    assert sorted(shown) == sorted(item.name for item in alive)
    for group in answer["groups"]:
        assert group["bytes"] == sum(item["all_bytes"] for item in group["items"]) == sum(group["categories"].values())
    if by == "layer":
        assert answer["groups"][0]["key"] == "sequential/dense"
    if by == "shape":
        assert answer["groups"][0]["key"] == "[6019376, 128] float32"


def test_the_peak_is_known_of_old_records_too(ask):
    answer = ask("moment?run=full&id=cpu_bfc@host/2026_01_01_00_00_00")[1]
    assert (answer["position"], answer["unit"]) == (1250, "ns")
    assert answer["bytes"] == answer["live_bytes"]
    assert answer["groups"][0]["key"] == "sequential/dense"
    code, other = ask("moment?run=full&id=cpu_bfc@host/2026_01_01_00_00_00&at=7")
    assert code == 404
    assert "only at the peak" in other["error"]


def test_a_profile_is_laid_on_the_predicted_axis(ask):
    answer = ask("aligned?run=full&id=cpu_bfc@host/2026_01_01_00_00_00&points=100")[1]
    profile, phase = sample_profile(events=5000), sample_estimate().phases["step"]
    assert answer["phase"] == "step"
    assert answer["step"] == {"name": "step 3", "start": 0, "end": 2_500_000}
    assert answer["events"] == 2500
    assert answer["measured_peak_bytes"] == profile.peak_bytes
    assert answer["predicted_peak_bytes"] == phase.timeline.peak_bytes
    assert answer["beside_bytes"] == profile.before_bytes - phase.timeline.live_bytes[0]
    assert max(answer["timeline"]["live_bytes"]) == profile.peak_bytes
    assert len(answer["timeline"]["ticks"]) <= 100
    assert answer["timeline"]["ticks"][-1] <= phase.timeline.ticks[-1]
    positions = answer["timeline"]["positions"]
    assert answer["timeline"]["live_bytes"] == [profile.timeline.live_bytes[position] for position in positions]
    stretch = ask("aligned?run=full&id=cpu_bfc@host/2026_01_01_00_00_00&points=100&from=3&to=5")[1]["timeline"]
    assert all(3 <= tick <= 5 for tick in stretch["ticks"][1:-1])
    assert stretch["live_bytes"] == [profile.timeline.live_bytes[position] for position in stretch["positions"]]
    assert answer["ops"]["measured"] == 3
    assert len(answer["differences"]) == 100


def test_each_layer_is_told_with_what_a_profile_measured_of_it(ask):
    answer = ask("overview?run=full")[1]
    peak = sample_profile(events=5000).peak_bytes
    rows = {row["path"]: row["measured_bytes"] for row in answer["estimate"]["layers"]}
    assert rows == {**dict.fromkeys(rows, 0), DENSE: peak - 1537, "(step)": 1537}
    total = answer["estimate"]["total"]
    assert total["measured_bytes"] == peak
    assert total["difference_bytes"] == sum(row["difference_bytes"] for row in answer["estimate"]["layers"])
    compared = answer["measured"]["compared"]
    assert (compared["profile"], compared["phase"]) == ("cpu_bfc@host/2026_01_01_00_00_00", "step")
    assert sum(row["measured_bytes"] for row in compared["layers"]) == compared["measured_peak_bytes"] == peak
    assert sum(row["predicted_bytes"] for row in compared["layers"]) == compared["predicted_peak_bytes"]
    for row in compared["layers"]:
        assert row["difference_bytes"] == row["measured_bytes"] - row["predicted_bytes"]


def test_profile(ask):
    answer = ask("profile?run=full&id=cpu_bfc@host/2026_01_01_00_00_00")[1]
    assert answer["events"] == 5000
    assert 900 < len(answer["timeline"]["ticks"]) <= 2000
    assert answer["peak_bytes"] == max(answer["timeline"]["live_bytes"]) == 3 * KERNEL_BYTES + 1537 + 1250 * 100_000_007
    assert answer["timeline"]["unit"] == "ns"
    assert answer["timeline"]["spans"] == [
        {"name": "step 3", "start": 0, "end": 2_500_000},
        {"name": "step 4", "start": 2_500_000, "end": 5_000_000},
    ]


def test_peaks(ask):
    told = sample_peaks().to_dict()
    del told["shared_by"]
    nothing = {"beside": [], "leaks": []}
    assert ask("peaks?run=measured") == (200, {"devices": [told], **nothing})
    assert ask("peaks?run=broken") == (200, {"devices": [], **nothing})


@pytest.mark.parametrize(
    ("address", "status", "sentence"),
    [
        ("overview", 400, "overview needs the parameter 'run'"),
        ("overview?run=", 400, "overview needs the parameter 'run'"),
        (
            "overview?run=full&limit=much",
            400,
            "limit: 'much' is not a memory size, nor a device that is known. Give bytes",
        ),
        ("overview?run=full&limit=0", 400, "must be positive, not 0"),
        ("overview?run=measured&limit=much", 400, "'much' is not a memory size"),
        (
            "overview?run=full/memest",
            404,
            "no run 'full/memest' holds records of memest; runs that do: 'broken', 'full'",
        ),
        ("timeline?run=full", 400, "timeline needs the parameter 'phase'"),
        ("timeline?run=full&phase=sleep", 404, "run 'full' has no phase 'sleep'; it has: build, first_step, step."),
        ("timeline?run=measured&phase=step", 404, "run 'measured' has no estimate. It has only measurements."),
        ("timeline?run=broken&phase=step", 404, "no estimate. The record 'estimate' could not be read."),
        ("timeline?run=full&phase=step&points=3", 400, "points is at least 4, not 3"),
        ("timeline?run=full&phase=step&points=many", 400, "points is a whole number, not 'many'"),
        ("profile?run=full", 400, "profile needs the parameter 'id'"),
        ("aligned?run=full&id=x", 404, "no profile 'x'; it has: cpu_bfc@host/2026_01_01_00_00_00."),
        ("aligned?run=full", 400, "aligned needs the parameter 'id'"),
        ("profile?run=full&id=x", 404, "no profile 'x'; it has: cpu_bfc@host/2026_01_01_00_00_00."),
        ("profile?run=broken&id=x", 404, "it has: none. The record 'profile/x' could not be read."),
        ("profile?run=full&id=x&from=5&to=4", 400, "from is at most to, but 5 is more than 4."),
        ("moment?run=full", 400, "moment needs either 'phase', of a prediction, or 'id', of a profile."),
        ("moment?run=full&phase=step&by=size", 400, "by is one of layer, op, category, shape, not 'size'."),
        ("moment?run=full&phase=step&at=-1", 404, "the timeline has 15 events, from 0 on, and none at -1."),
        ("moment?run=full&phase=step&at=x", 400, "at is a whole number, not 'x'"),
        ("peaks?run=nowhere", 404, "no run 'nowhere'"),
        ("nonsense", 404, "the frontend has no file 'nonsense'"),
    ],
)
def test_errors_are_sentences(ask, address, status, sentence):
    code, answer = ask(address)
    assert code == status
    assert list(answer) == ["error"]
    assert sentence in answer["error"]


def test_a_fault_of_memests_own_is_a_sentence_too(ask, monkeypatch):
    monkeypatch.setattr(ask.provider, "list_tensors", lambda *args, **kwargs: 1 / 0)
    for route in ROUTES:
        status, answer = ask(f"{route}?run=full&{'id=x' if route in ('profile', 'aligned') else 'phase=step'}")
        assert status == 500
        assert answer == {
            "error": "memest could not answer this: ZeroDivisionError('division by zero'). "
            "TensorBoard's log has the details."
        }


def test_head_requests(ask):
    assert ask("runs", "HEAD")[0] == 200


def test_how_tensorboard_sees_it(ask, tmp_path):
    plugin = MemestPlugin(base_plugin.TBContext(data_provider=ask.provider))
    metadata = plugin.frontend_metadata()
    assert (plugin.plugin_name, metadata.tab_name, metadata.es_module_path) == ("memest", "Memory", "/index.js")
    assert metadata.es_module_path in plugin.get_plugin_apps()
    assert plugin.is_active() is False
    assert list(plugin.data_plugin_names()) == ["memest"]
