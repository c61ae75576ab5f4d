"""Measurements as data."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given

from tensorboard_plugin_memest.memory.measured import MeasuredPeaks, MeasuredProfile, Window
from tests.samples import sample_peaks, sample_profile
from tests.strategies import measured_peaks, measured_profiles

WINDOWS = (Window(0, 0, 7, 1, 2, 5), Window(1, 40, 2**40 + 1, 2, 1, 2**40), Window(41, 99, 9, 3, 3, 6))


@given(measured_peaks)
def test_peaks_round_trip(peaks):
    assert MeasuredPeaks.from_dict(json.loads(json.dumps(peaks.to_dict()))) == peaks


@given(measured_profiles)
def test_profile_round_trip(profile):
    assert MeasuredProfile.from_dict(json.loads(json.dumps(profile.to_dict()))) == profile


def test_the_highest_window_is_the_peak():
    peaks = replace(sample_peaks(), windows=WINDOWS)
    assert (peaks.peak_bytes, peaks.steps) == (2**40 + 1, 100)


def test_before_the_first_step():
    peaks = replace(sample_peaks(), windows=())
    assert (peaks.peak_bytes, peaks.steps, peaks.phases) == (None, 0, {})


def test_the_first_step_is_a_phase_of_its_own_where_it_was_measured_alone():
    peaks = replace(sample_peaks(), windows=WINDOWS)
    assert peaks.phases == {"first_step": WINDOWS[:1], "step": WINDOWS[1:]}
    assert replace(peaks, windows=WINDOWS[:1]).phases == {"first_step": WINDOWS[:1]}
    together = (replace(WINDOWS[0], last_step=3), replace(WINDOWS[1], first_step=4))
    assert replace(peaks, windows=together).phases == {"step": together}


def test_a_window_is_a_row_of_six_numbers():
    peaks = replace(sample_peaks(), windows=(Window(1, 40, 2**40 + 1, 2, 3, 4),))
    assert peaks.to_dict()["windows"] == [[1, 40, 2**40 + 1, 2, 3, 4]]
    fields = ("first_step", "last_step", "peak_bytes", "current_bytes", "start_bytes", "rise_bytes")
    assert [getattr(peaks.windows[0], name) for name in fields] == [1, 40, 2**40 + 1, 2, 3, 4]


def test_a_profile_that_only_frees_peaked_before_it_started():
    profile = sample_profile()
    assert profile.peak_bytes == profile.timeline.peak_bytes == profile.before_bytes + 10 * 100_000_007
    falling = replace(profile.timeline, live_bytes=[5] * len(profile.timeline))
    assert replace(profile, timeline=falling).peak_bytes == profile.before_bytes
