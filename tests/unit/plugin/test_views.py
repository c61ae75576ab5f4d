"""What the routes answer, from hand-made records."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.explanation_text import what_changes_save
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.measured import MeasuredBeside, MeasuredPeaks, Window
from tensorboard_plugin_memest.memory.units import MIB
from tensorboard_plugin_memest.memory.whose import Whose
from tensorboard_plugin_memest.plugin import views
from tensorboard_plugin_memest.plugin.reader import RunRecords
from tests.samples import KERNEL_BYTES, PIPELINE_BYTES, sample_advice, sample_estimate, sample_peaks, sample_profile

PEAK = 6 * KERNEL_BYTES + 768 + (24300480 + 64) + 1000003 + 1532928 + 256


@pytest.fixture
def full() -> RunRecords:
    return RunRecords(
        "as-asked",
        estimate=sample_estimate(limit_bytes=20_000_000_000),
        peaks=[
            sample_peaks("CPU:0"),
            sample_peaks("CPU:1", peak_bytes=18_400_000_003),
            sample_peaks("GPU:0", steps=9, peak_bytes=2**40),
        ],
        profiles=[sample_profile()],
        notes=("No GPU.",),
        problems=["The record 'x' could not be read."],
    )


def test_headline(full):
    assert views.headline(full) == {
        "name": "as-asked",
        "began": None,
        "model": "sequential",
        "optimizer": "Adam",
        "batch_size": 1,
        "mode": "graph",
        "device": "CPU",
        "peak_bytes": PEAK,
        "measured_peak_bytes": 18_400_000_003 - PIPELINE_BYTES - 5,
        "limit_bytes": 20_000_000_000,
        "crashed": False,
        "problems": ["The record 'x' could not be read."],
    }


def test_headline_of_measurements_alone():
    row = views.headline(
        RunRecords("run", peaks=[sample_peaks("CPU:0", peak_bytes=5000), sample_peaks("GPU:0", peak_bytes=9000)])
    )
    assert row.pop("measured_peak_bytes") == 9000
    assert row.pop("name") == "run"
    assert row.pop("problems") == []
    assert row.pop("crashed") is False
    assert set(row) == {"began", "model", "optimizer", "batch_size", "mode", "device", "peak_bytes", "limit_bytes"}
    assert set(row.values()) == {None}


def test_overview_of_nothing():
    assert views.overview(RunRecords("run"), 10**10) == {
        "name": "run",
        "estimate": None,
        "verdict": None,
        "advice": None,
        "measured": {
            "peak_bytes": None,
            "total_peak_bytes": None,
            "pipeline_bytes": None,
            "difference": None,
            "phases": {},
            "host": None,
            "totals": [],
            "devices": [],
            "profiles": [],
            "compared": None,
            "notes": [],
        },
        "crash": None,
        "problems": [],
    }


def test_advice_is_told_whole():
    answer = views.overview(RunRecords("run", advice=sample_advice()), None)["advice"]
    assert answer == json.loads(json.dumps(sample_advice().to_dict()))
    assert answer["levers"][0]["saving_by_category"] == {"optimizer_slots": 6163841024, "temporaries": 5943700224}
    assert answer["useless"][0]["reason"] == "ß: stays float32"


def test_a_crash_is_told_with_the_largest_of_what_was_alive():
    items = [Item("a", f"op{n}", Category.TEMPORARIES, "x", None, (n,), "int8", n, n) for n in range(100, 0, -1)]
    crash = Explanation("XLA", "ran out", op="op", bytes=7, phase="step", step=3, live=tuple(items), advice=("Less.",))
    answer = views.overview(RunRecords("run", crash=crash), None)["crash"]
    assert answer.pop("live") == [item.to_dict() for item in items[:20]]
    assert (answer.pop("live_count"), answer.pop("live_bytes")) == (100, 5050)
    assert answer.pop("live_categories") == {"temporaries": 5050}
    assert (answer.pop("free_bytes"), answer.pop("short_bytes")) == (None, None)
    assert answer.pop("headline") == "XLA ran out in step 3 when asked for 7 B."
    assert answer.pop("sentence") == "The run ran out of memory in step 3."
    rest = crash.to_dict()
    del rest["live"]
    assert answer == rest


def test_a_crash_does_not_send_for_advice_that_is_there():
    crash = Explanation("XLA", "ran out", limit_bytes=70, advice=("Less.", what_changes_save(70)))
    told = [
        views.overview(RunRecords("run", crash=crash, advice=advice), None)["crash"]["advice"]
        for advice in (None, sample_advice())
    ]
    assert told == [["Less.", what_changes_save(70)], ["Less."]]


@pytest.mark.parametrize(("asked", "free", "short"), [(40, 30, 10), (30, 30, 0), (7, 30, 0), (None, 30, None)])
def test_a_crash_says_how_much_room_there_was(asked, free, short):
    crash = Explanation("XLA", "ran out", bytes=asked, in_use_bytes=70, limit_bytes=100)
    answer = views.overview(RunRecords("run", crash=crash), None)["crash"]
    assert (answer["free_bytes"], answer["short_bytes"]) == (free, short)


def test_overview_has_the_fields_of_the_contract(full):
    answer = views.overview(full, None)
    assert list(answer) == ["name", "estimate", "verdict", "advice", "measured", "crash", "problems"]
    assert list(answer["estimate"]) == [
        "subject",
        "peak_bytes",
        "peak_phase",
        "resident_bytes",
        "phases",
        "layers",
        "groups",
        "total",
        "dominant",
        "assumptions",
    ]
    assert answer["estimate"]["subject"] == {
        "model_name": "sequential",
        "model_class": "Sequential",
        "parameters": 770482865,
        "trainable_parameters": 770482865,
        "optimizer": "Adam",
        "batch_size": 1,
        "mode": "graph",
        "device": "CPU",
        "pool": "growth",
        "versions": {"memest": "0.1.0", "tensorflow": "2.21.0", "keras": "3.15.1"},
        "strategy": None,
        "replicas": 1,
    }
    assert answer["estimate"]["assumptions"] == list(full.estimate.assumptions)


@pytest.mark.parametrize(
    ("whose", "words"),
    [
        (Whose("a", Category.TEMPORARIES, "update temporary", "a/kernel"), "update temporary of a/kernel"),
        (Whose("b", Category.ACTIVATIONS, "Relu output", None), "Relu output of b"),
    ],
)
def test_a_peak_is_of_what_its_op_allocates(full, whose, words):
    step = full.estimate.phases["step"]
    estimate = replace(full.estimate, phases={"step": replace(step, owners={step.peak_op: whose})})
    (phase,) = views.estimate_view(estimate)["phases"]
    assert phase["peak_of"] == words


def test_phases(full):
    phases = views.estimate_view(full.estimate)["phases"]
    assert [phase["name"] for phase in phases] == ["build", "first_step", "step"]
    assert phases[0] == {
        "name": "build",
        "peak_bytes": 3 * KERNEL_BYTES,
        "requested_peak_bytes": 3 * KERNEL_BYTES,
        "peak_without_scratch_bytes": 3 * KERNEL_BYTES,
        "peak_range": [3 * KERNEL_BYTES - 4096, 3 * KERNEL_BYTES + 4096],
        "peak_op": "uniform/AddV2",
        "peak_of": None,
        "host_peak_bytes": 0,
        "categories": {"weights": KERNEL_BYTES, "temporaries": 2 * KERNEL_BYTES},
    }
    assert list(phases[2]["categories"].items()) == [
        ("weights", KERNEL_BYTES + 768),
        ("gradients", KERNEL_BYTES),
        ("optimizer_slots", 2 * KERNEL_BYTES),
        ("activations", 24300544),
        ("inputs", 1532928),
        ("temporaries", 2 * KERNEL_BYTES),
        ("workspace", 1000003),
        ("constants", 256),
    ]
    assert phases[2]["peak_without_scratch_bytes"] == PEAK - 1000003


def test_layers_and_their_total(full):
    view = views.estimate_view(full.estimate)
    assert view["peak_bytes"] == PEAK
    assert view["layers"][0] == {
        "path": "sequential/conv2d",
        "class_name": "Conv2D",
        "output_shape": [1, 1489, 255, 16],
        "parameters": 160,
        "bytes_per_category": {"weights": 768, "activations": 24300544, "workspace": 1000003},
        "bytes_at_peak": 768 + 24300544 + 1000003,
        "measured_bytes": None,
        "difference_bytes": None,
    }
    assert view["layers"][3] == {
        "path": "(input)",
        "class_name": "",
        "output_shape": None,
        "parameters": 0,
        "bytes_per_category": {"inputs": 1532928},
        "bytes_at_peak": 1532928,
        "measured_bytes": None,
        "difference_bytes": None,
    }
    (group,) = view["groups"]
    assert (group["path"], group["layers"]) == ("sequential", 3)
    assert group["bytes_at_peak"] == sum(row["bytes_at_peak"] for row in view["layers"] if row["class_name"])
    total = view["total"]
    assert total["bytes_at_peak"] == PEAK == sum(layer["bytes_at_peak"] for layer in view["layers"])
    assert total["parameters"] == 160 + 770480256
    for category, size in total["bytes_per_category"].items():
        assert size == sum(layer["bytes_per_category"].get(category, 0) for layer in view["layers"])
    assert sum(total["bytes_per_category"].values()) == PEAK


def test_dominant(full):
    (kernel,) = views.estimate_view(full.estimate)["dominant"]
    assert (kernel["name"], kernel["layer"], kernel["shape"]) == (
        "sequential/dense/kernel",
        "sequential/dense",
        [6019376, 128],
    )
    assert kernel["bytes"] == 6 * KERNEL_BYTES
    assert kernel["share"] == pytest.approx(6 * KERNEL_BYTES / PEAK)
    assert kernel["sentence"].startswith(
        "sequential/dense/kernel [6019376, 128] is 99.9 % of the peak: six copies of 2.87 GiB"
    )
    assert kernel["parts"][4] == {
        "role": "update temporary",
        "category": "temporaries",
        "count": 2,
        "bytes": 2 * KERNEL_BYTES,
        "requested_bytes": 2 * KERNEL_BYTES,
        "share": pytest.approx(2 * KERNEL_BYTES / PEAK),
    }


def test_verdict_by_the_recorded_limit_or_the_one_asked_for(full):
    recorded = views.overview(full, None)["verdict"]
    assert recorded["limit_bytes"] == 20_000_000_000
    assert (recorded["outcome"], recorded["margin_bytes"]) == ("fits", 20_000_000_000 - PEAK)
    asked = views.overview(full, PEAK - 1)["verdict"]
    assert (asked["outcome"], asked["margin_bytes"]) == ("does not fit", -1)
    assert asked["sentence"] == "Needs 17.25 GiB; the limit is 17.25 GiB: 1 B short."
    assert asked["phases"] == {
        "build": {"peak_bytes": 3 * KERNEL_BYTES, "margin_bytes": PEAK - 1 - 3 * KERNEL_BYTES, "outcome": "fits"},
        "first_step": {"peak_bytes": PEAK, "margin_bytes": -1, "outcome": "does not fit"},
        "step": {"peak_bytes": PEAK, "margin_bytes": -1, "outcome": "does not fit"},
    }
    assert views.overview(full, PEAK + 1)["verdict"]["outcome"] == "may not fit"
    assert views.overview(replace(full, estimate=sample_estimate()), None)["verdict"] is None


def test_measured(full):
    measured = views.overview(full, None)["measured"]
    assert measured["total_peak_bytes"] == 18_400_000_003, "the GPU is not the estimate's device"
    assert measured["pipeline_bytes"] == PIPELINE_BYTES + 5
    # Before the highest step 2 bytes more are in use, and 3 more after it.
    peak = 18_400_000_003 - PIPELINE_BYTES - 5
    assert measured["peak_bytes"] == peak
    assert measured["difference"] == pytest.approx((PEAK - peak) / peak)
    assert measured["phases"] == {"first_step": 18_400_000_003 - 14 - PIPELINE_BYTES - 3, "step": peak}
    assert measured["difference"] > 0
    assert measured["devices"][2] == {
        "device": "GPU:0",
        "source": "TensorFlow's BFC allocator",
        "before_bytes": 9_246_000_129,
        "limit_bytes": 25_769_803_776,
        "peak_bytes": 2**40,
        "steps": 9,
    }
    (profile,) = measured["profiles"]
    before = profile.pop("before")
    assert profile == {
        "id": "cpu_bfc@host/2026_01_01_00_00_00",
        "allocator": "cpu_bfc",
        "host": "host",
        "started_at": "2026_01_01_00_00_00",
        "before_bytes": 3 * KERNEL_BYTES + 1537,
        "peak_bytes": 3 * KERNEL_BYTES + 1537 + 10 * 100_000_007,
    }
    assert before[3] == {
        "layer": "(step)",
        "name": "",
        "category": "unattributed",
        "role": "allocated before the profile",
        "variable": None,
        "shape": None,
        "dtype": None,
        "requested_bytes": 1537,
        "bytes": 1537,
    }
    assert measured["notes"] == ["No GPU."]


def test_without_an_estimate_the_measured_peak_is_what_was_counted(full):
    measured = views.overview(replace(full, estimate=None), None)["measured"]
    assert measured["peak_bytes"] == measured["total_peak_bytes"] == 2**40
    assert (measured["pipeline_bytes"], measured["difference"]) == (None, None)
    assert measured["phases"] == {"first_step": 2**40 - 28, "step": 2**40}


def test_a_device_before_its_first_step_has_no_peak():
    run = RunRecords("run", estimate=sample_estimate(), peaks=[replace(sample_peaks(), windows=())])
    measured = views.overview(run, None)["measured"]
    assert (measured["peak_bytes"], measured["difference"]) == (None, None)
    assert (measured["devices"][0]["peak_bytes"], measured["devices"][0]["steps"]) == (None, 0)


def test_peaks(full):
    devices = views.peaks_view(full)["devices"]
    assert [device["device"] for device in devices] == ["CPU:0", "CPU:1", "GPU:0"]
    assert devices[0] == {
        "device": "CPU:0",
        "source": "TensorFlow's BFC allocator",
        "before_bytes": 9_246_000_129,
        "limit_bytes": 25_769_803_776,
        "windows": [
            [0, 0, 18_399_999_987, 9_246_762_307, 9_246_762_304, 9_153_237_680],
            [1, 1, 18_399_999_994, 9_246_762_308, 9_246_762_305, 9_153_237_686],
            [2, 2, 18_400_000_001, 9_246_762_309, 9_246_762_306, 9_153_237_692],
            [3, 3, 18_399_999_994, 9_246_762_310, 9_246_762_307, 9_153_237_684],
            [4, 4, 18_399_999_987, 9_246_762_311, 9_246_762_308, 9_153_237_676],
        ],
        "epochs": [],
    }


def test_what_grows_is_told_with_from_where_to_where():
    windows = tuple(Window(step, step, 9 * MIB, MIB + step * 4096, MIB, 8 * MIB) for step in range(100))
    peaks = MeasuredPeaks("GPU:0", "the allocator", None, None, windows)
    evaluated = MeasuredBeside("evaluate", replace(sample_peaks(), windows=sample_peaks().windows[:2]))
    answer = views.peaks_view(RunRecords("run", peaks=[peaks, sample_peaks()], beside=[evaluated]))
    (leak,) = answer["leaks"]
    assert (leak["what"], leak["device"], leak["until_step"]) == ("train", "GPU:0", 99)
    assert leak["until_bytes"] == windows[99].current_bytes
    assert leak["since_bytes"] == windows[leak["since_step"]].current_bytes
    assert leak["grown_bytes"] == leak["until_bytes"] - leak["since_bytes"]
    assert leak["bytes_per_step"] == 4096
    assert leak["sentence"] == views.overview(RunRecords("run", peaks=[peaks]), None)["measured"]["notes"][0]
    (beside,) = answer["beside"]
    assert (beside["what"], beside["device"], len(beside["windows"])) == ("evaluate", "CPU:0", 2)
