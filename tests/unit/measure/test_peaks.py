"""Windows of peaks: nothing lost, nothing counted twice, a bounded number."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.measure.peaks import MAX_WINDOWS, PeakRecorder
from tensorboard_plugin_memest.memory.measured import Window

BYTES = st.integers(0, 2**45)
RECORDS = st.lists(st.tuples(BYTES, BYTES, st.integers(1, 4)), max_size=200)


def recorded(records: list[tuple[int, int, int]], max_windows: int) -> tuple[PeakRecorder, list[tuple[int, int]]]:
    """A recorder that was given `records`, and (peak, current) of each single step."""
    recorder = PeakRecorder(max_windows)
    steps: list[tuple[int, int]] = []
    for peak, current, count in records:
        recorder.record(peak, current, count)
        steps += [(peak, current)] * count
    return recorder, steps


@given(RECORDS, st.integers(3, 12))
def test_every_step_is_in_exactly_one_window_and_windows_are_in_order(records, max_windows):
    recorder, steps = recorded(records, max_windows)
    covered = [step for window in recorder.windows for step in range(window.first_step, window.last_step + 1)]
    assert covered == list(range(len(steps)))
    assert recorder.steps == len(steps)


@given(RECORDS, st.integers(3, 12))
def test_every_window_holds_the_maxima_of_its_steps(records, max_windows):
    recorder, steps = recorded(records, max_windows)
    for window in recorder.windows:
        held = steps[window.first_step : window.last_step + 1]
        assert window.peak_bytes == max(peak for peak, _ in held)
        assert window.current_bytes == max(current for _, current in held)


@given(RECORDS.filter(bool), st.integers(3, 12))
def test_the_highest_peak_survives(records, max_windows):
    recorder, _ = recorded(records, max_windows)
    assert max(window.peak_bytes for window in recorder.windows) == max(peak for peak, _, _ in records)


@given(RECORDS, st.integers(3, 12))
def test_there_are_never_more_windows_than_allowed_and_the_first_record_stays_alone(records, max_windows):
    recorder, _ = recorded(records, max_windows)
    assert len(recorder.windows) <= max_windows
    if records:
        peak, current, count = records[0]
        assert recorder.windows[0] == Window(0, count - 1, peak, current)


def test_few_steps_stay_single():
    recorder, _ = recorded([(n, n, 1) for n in range(MAX_WINDOWS)], MAX_WINDOWS)
    assert recorder.windows == tuple(Window(n, n, n, n) for n in range(MAX_WINDOWS))


def test_one_step_too_many_merges_neighbours_two_by_two():
    recorder, _ = recorded([(n, 10 - n, 1) for n in range(7)], 6)
    assert recorder.windows == (
        Window(0, 0, 0, 10),
        Window(1, 2, 2, 9),
        Window(3, 4, 4, 7),
        Window(5, 6, 6, 5),
    )


def test_a_million_steps_are_cheap_and_resolved_alike():
    recorder = PeakRecorder()
    started = time.perf_counter()
    for step in range(1_000_000):
        recorder.record(step, 0)
    seconds = time.perf_counter() - started
    windows = recorder.windows
    assert [window.peak_bytes for window in windows] == [window.last_step for window in windows]
    assert windows[-1].last_step == 999_999
    assert MAX_WINDOWS // 2 <= len(windows) <= MAX_WINDOWS
    widths = {window.last_step - window.first_step + 1 for window in windows[1:-1]}
    assert len(widths) == 1
    # Measured: 1.5 s. Work that grew with the number of steps would take minutes.
    assert seconds < 30


@pytest.mark.parametrize("steps", [0, -1])
def test_a_record_of_no_step_is_refused(steps):
    with pytest.raises(ValueError, match=f"at least one step, not {steps}"):
        PeakRecorder().record(1, 1, steps)


def test_too_few_windows_are_refused():
    with pytest.raises(ValueError, match=r"at least 3 .* not 2"):
        PeakRecorder(2)
