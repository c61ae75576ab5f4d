"""Predicted against measured, the data pipeline apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.measure.peaks import PeakRecorder
from tensorboard_plugin_memest.memory.comparison import Comparison, compare, compare_devices
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks, Window
from tensorboard_plugin_memest.memory.timeline import Timeline
from tests.samples import sample_estimate, sample_peaks

HELD = 1000  # between steps, as the estimate has it
PREDICTED = 1500


def estimate(before_a_step: int = HELD, after_the_first: int = HELD, device: str = "CPU") -> Estimate:
    """One whose first step goes from 400 over 1450 to `after_the_first`, and later ones to 1500 and down again."""
    made = sample_estimate()
    first = Timeline("op", [0, 1, 2], [400, 1450, after_the_first], [0, 0, 0], ["op"])
    later = Timeline("op", [0, 1, 2], [before_a_step, PREDICTED, 77], [0, 0, 0], ["op"])
    phases = {
        "build": made.phases["build"],
        "first_step": replace(made.phases["first_step"], peak_bytes=1450, timeline=first),
        "step": replace(made.phases["step"], peak_bytes=PREDICTED, timeline=later),
    }
    return replace(made, subject=replace(made.subject, device=device), resident_bytes=900, phases=phases)


def measured(*steps: tuple[int, int, int], device: str = "CPU:0") -> MeasuredPeaks:
    """Peaks of steps with (start, peak, current), each a window of its own."""
    recorder = PeakRecorder()
    for start, peak, current in steps:
        recorder.record(start, peak, current)
    return replace(sample_peaks(device), windows=recorder.windows)


def test_what_is_in_use_between_steps_beyond_the_estimate_is_the_pipeline_s():
    found = compare(estimate(), measured((400, 1520, 1070), (1070, 1550, 1070), (1080, 1600, 1070)))
    assert found == Comparison(PREDICTED, 1600, {"first_step": 1450, "step": 1520})
    assert (found.step_peak_bytes, found.pipeline_bytes) == (1520, 80)
    assert found.difference == pytest.approx((1500 - 1520) / 1520)


@pytest.mark.parametrize(("replicas", "shared_by", "times"), [(2, 2, 2), (4, 2, 2), (2, 1, 1), (1, 3, 1)])
def test_replicas_that_share_an_allocator_are_held_against_it_together(replicas, shared_by, times):
    made = estimate()
    made = replace(made, subject=replace(made.subject, replicas=replicas))
    start = times * HELD + 30
    peaks = replace(measured((0, 1, 1), (start, start + 700, start)), shared_by=shared_by)
    found = compare(made, peaks)
    assert found.predicted_peak_bytes == times * PREDICTED
    assert found.phases["step"] == times * HELD + 700
    assert found.pipeline_bytes == 30


def test_slots_that_the_first_step_makes_are_its_own_and_a_pipeline_it_fills_is_not():
    # It began with 400 and ends with 600 more of slots and 70 of cached elements.
    assert compare(estimate(), measured((400, 1520, 1070))).phases == {"first_step": 1450}
    # The same with slots that were there before.
    assert compare(estimate(), measured((1000, 1520, 1070))).phases == {"first_step": 1450}


def test_a_buffer_that_is_filled_anew_within_a_later_step_is_the_pipeline_s():
    # A shuffle buffer that is thrown away between epochs.
    found = compare(estimate(), measured((400, 1500, 1000), (1300, 1810, 1300), (1005, 1800, 1300)))
    assert (found.measured_peak_bytes, found.phases["step"]) == (1810, 1510)
    assert compare(estimate(), measured((400, 1500, 1000), (1005, 1800, 1300))).phases["step"] == 1500


def test_the_first_step_is_held_against_the_first_step_s_end_and_later_ones_against_a_later_one_s_start():
    found = compare(estimate(before_a_step=1010, after_the_first=1001), measured((400, 1600, 1100), (1100, 1600, 0)))
    assert found.phases == {"first_step": 1001 + 500, "step": 1010 + 500}


def test_with_less_in_use_than_estimated_nothing_is_the_pipeline_s():
    found = compare(estimate(), measured((400, 1300, 950), (950, 1400, 990), (990, 1430, 950)))
    assert found == Comparison(PREDICTED, 1430, {"first_step": 1300, "step": 1430})
    assert found.pipeline_bytes == 0
    assert found.difference == pytest.approx(70 / 1430)


def test_the_step_that_rose_most_counts_wherever_the_pipeline_held_most():
    # The highest measured peak is the last one; the step itself needed most in the one before.
    found = compare(estimate(), measured((400, 1400, 1000), (1000, 1510, 1000), (1200, 1620, 1200)))
    assert (found.measured_peak_bytes, found.step_peak_bytes, found.pipeline_bytes) == (1620, 1510, 110)


def test_the_first_step_can_be_the_highest():
    found = compare(estimate(), measured((400, 1700, 1050), (1050, 1500, 1050)))
    assert found.phases == {"first_step": 1650, "step": 1450}
    assert (found.step_peak_bytes, found.pipeline_bytes) == (1650, 50)


def test_steps_that_began_together_have_no_first_one():
    peaks = replace(sample_peaks(), windows=(Window(0, 3, 1700, 1050, 400, 650), Window(4, 7, 1500, 1050, 1050, 450)))
    assert compare(estimate(), peaks).phases == {"step": 1650}


def test_peaks_of_a_gpu_are_compared_as_they_are():
    peaks = measured((400, 1520, 1070), (1070, 1550, 1070), device="GPU:0")
    found = compare(estimate(device="GPU"), peaks)
    assert found == Comparison(PREDICTED, 1550, {"first_step": 1520, "step": 1550})
    assert found.pipeline_bytes == 0


def test_without_an_estimate_it_is_unknown_what_is_the_pipeline_s():
    found = compare(None, measured((400, 1520, 1070), (1070, 1550, 1070)))
    assert found == Comparison(None, 1550, {"first_step": 1520, "step": 1550})
    assert (found.step_peak_bytes, found.pipeline_bytes, found.difference) == (1550, None, None)


def test_before_the_first_step_nothing_is_measured():
    found = compare(estimate(), measured())
    assert found == Comparison(PREDICTED, None, {})
    assert (found.step_peak_bytes, found.pipeline_bytes, found.difference) == (None, None, None)


def test_an_estimate_of_one_phase_falls_back_on_the_variables():
    whole = estimate()
    one = replace(whole, phases={"first_step": whole.phases["first_step"]})
    assert compare(one, measured((400, 1520, 1070), (1070, 1550, 1070))).phases == {"first_step": 1450, "step": 1380}


def test_of_several_devices_the_one_of_the_estimate_s_kind_whose_steps_peaked_highest():
    devices = [
        measured((400, 1520, 1100), (1100, 1550, 1100), device="CPU:0"),
        measured((400, 1500, 1000), (1000, 1510, 1000), device="CPU:1"),
        measured((400, 9000, 1000), device="GPU:0"),
    ]
    assert compare_devices(estimate(), devices) == Comparison(PREDICTED, 1510, {"first_step": 1500, "step": 1510})
    assert compare_devices(estimate(device="GPU"), devices) == Comparison(PREDICTED, 9000, {"first_step": 9000})
    assert compare_devices(None, devices).step_peak_bytes == 9000
    assert compare_devices(estimate(device="GPU"), devices[:2]) == Comparison(PREDICTED, None, {})
    assert compare_devices(None, []) == Comparison(None, None, {})


sizes = st.integers(0, 2**40)
# (start, rise over the higher of the two ends, current), as no allocator can peak below either.
steps = st.lists(st.tuples(sizes, sizes, sizes), min_size=1, max_size=40)


@given(steps, sizes, sizes)
def test_a_step_s_own_peak_is_never_above_the_measured_one_and_never_lost_in_a_window_of_many(steps, before, after):
    made = estimate(before, after)
    recorders = {size: PeakRecorder(size) for size in (3, 1000)}
    for start, rise, current in steps:
        for recorder in recorders.values():
            recorder.record(start, max(start, current) + rise, current)
    merged, single = (compare(made, replace(sample_peaks(), windows=r.windows)) for r in recorders.values())
    assert merged.measured_peak_bytes == single.measured_peak_bytes
    assert merged.phases.keys() == single.phases.keys()
    for name, peak in single.phases.items():
        assert peak <= merged.phases[name] <= merged.measured_peak_bytes
    assert 0 <= merged.pipeline_bytes <= single.pipeline_bytes


@given(steps, st.integers(1, 2**40))
def test_a_pipeline_of_any_size_changes_nothing_of_the_step_s_own_peak(steps, pipeline):
    started = [(HELD + start, HELD + max(start, current) + rise, HELD + current) for start, rise, current in steps]
    grown = [tuple(number + pipeline for number in step) for step in started]
    without, with_pipeline = compare(estimate(), measured(*started)), compare(estimate(), measured(*grown))
    assert with_pipeline.phases == without.phases
    assert with_pipeline.pipeline_bytes == without.pipeline_bytes + pipeline
    assert with_pipeline.difference == without.difference
