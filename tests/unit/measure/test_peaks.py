"""Windows of peaks: nothing lost, nothing counted twice, a bounded number."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.measure.peaks import MAX_WINDOWS, EpochRecorder, PeakRecorder
from tensorboard_plugin_memest.memory.measured import Window

BYTES = st.integers(0, 2**45)
RECORDS = st.lists(st.tuples(BYTES, BYTES, BYTES, st.integers(1, 4)), max_size=200)


def recorded(
    records: list[tuple[int, int, int, int]], max_windows: int
) -> tuple[PeakRecorder, list[tuple[int, int, int]]]:
    """A recorder that was given `records`, and (start, peak, current) of each single step."""
    recorder = PeakRecorder(max_windows)
    steps: list[tuple[int, int, int]] = []
    for start, peak, current, count in records:
        recorder.record(start, peak, current, count)
        steps += [(start, peak, current)] * count
    return recorder, steps


@given(RECORDS, st.integers(3, 12))
def test_every_step_is_in_exactly_one_window_and_windows_are_in_order(records, max_windows):
    recorder, steps = recorded(records, max_windows)
    covered = [step for window in recorder.windows for step in range(window.first_step, window.last_step + 1)]
    assert covered == list(range(len(steps)))
    assert recorder.steps == len(steps)


@given(RECORDS, st.integers(3, 12))
def test_every_window_holds_the_extremes_of_its_steps(records, max_windows):
    recorder, steps = recorded(records, max_windows)
    for window in recorder.windows:
        held = steps[window.first_step : window.last_step + 1]
        assert window.peak_bytes == max(peak for _, peak, _ in held)
        assert window.current_bytes == max(current for _, _, current in held)
        assert window.start_bytes == min(start for start, _, _ in held)


@given(RECORDS.map(lambda records: [(*record[:3], 1) for record in records]), st.integers(3, 12))
def test_every_window_holds_the_highest_rise_above_what_was_in_use_around_a_step(records, max_windows):
    recorder, steps = recorded(records, max_windows)
    rises = []
    for number, (start, peak, current) in enumerate(steps):
        given_back = max([0, *(before - after for before, _, after in steps[1:number])])
        rises.append(min(peak - start, peak - current + given_back))
    for window in recorder.windows:
        assert window.rise_bytes == max(rises[window.first_step : window.last_step + 1])


def rises_of(*records: tuple[int, int, int]) -> list[int]:
    recorder = PeakRecorder()
    for start, peak, current in records:
        recorder.record(start, peak, current)
    return [window.rise_bytes for window in recorder.windows]


def test_what_a_step_keeps_is_not_in_its_rise():
    # Slots of 600 in the first; a buffer of 300 that is thrown away between epochs and filled anew inside a step.
    assert rises_of((400, 1500, 1000), (1300, 1805, 1300), (1000, 1803, 1300)) == [500, 505, 503]


def test_what_swings_between_steps_is_in_the_rise_of_those_that_begin_low():
    # The same variables in chunks of 1000 and of 1100 bytes by turns; nothing is kept.
    assert rises_of((400, 1500, 1100), (1100, 1600, 1000), (1000, 1600, 1100), (1100, 1600, 1000)) == [
        400, 500, 600, 500
    ]  # fmt: skip
    # A buffer that is filled beside such a swing is told from it but for as much as swings.
    assert rises_of((400, 1500, 1100), (1100, 1600, 1000), (1000, 2600, 2000)) == [400, 500, 700]


def test_what_the_first_step_gives_back_is_no_swing():
    assert rises_of((5000, 5500, 1000), (1000, 1800, 1300)) == [500, 500]


@given(RECORDS.filter(bool), st.integers(3, 12))
def test_the_highest_peak_survives(records, max_windows):
    recorder, _ = recorded(records, max_windows)
    assert max(window.peak_bytes for window in recorder.windows) == max(peak for _, peak, _, _ in records)


@given(RECORDS, st.integers(3, 12))
def test_there_are_never_more_windows_than_allowed_and_the_first_record_stays_alone(records, max_windows):
    recorder, _ = recorded(records, max_windows)
    assert len(recorder.windows) <= max_windows
    if records:
        start, peak, current, count = records[0]
        assert recorder.windows[0] == Window(0, count - 1, peak, current, start, peak - max(start, current))


def test_few_steps_stay_single():
    recorder, _ = recorded([(n, 3 * n, 2 * n, 1) for n in range(MAX_WINDOWS)], MAX_WINDOWS)
    assert recorder.windows == tuple(Window(n, n, 3 * n, 2 * n, n, n) for n in range(MAX_WINDOWS))


def test_one_step_too_many_merges_neighbours_two_by_two():
    recorder, _ = recorded([(n, 10 + 3 * n, 10 - n, 1) for n in range(6)] + [(4, 28, 4, 1)], 6)
    assert recorder.windows == (
        Window(0, 0, 10, 10, 0, 0),
        Window(1, 2, 16, 9, 1, 8),
        Window(3, 4, 22, 7, 3, 16),
        Window(5, 6, 28, 5, 4, 24),
    )


def test_a_million_steps_are_cheap_and_resolved_alike():
    recorder = PeakRecorder()
    started = time.thread_time()
    for step in range(1_000_000):
        recorder.record(0, step, 0)
    seconds = time.thread_time() - started
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
        PeakRecorder().record(1, 1, 1, steps)


def test_epochs_are_kept_evenly_however_many_there_are():
    recorder = EpochRecorder(4)
    for number in range(3):
        recorder.begin(number, 10 * number)
    assert recorder.before(20) == ((0, 0), (1, 10))
    assert recorder.before(21) == ((0, 0), (1, 10), (2, 20))
    for number in range(3, 13):
        recorder.begin(number, 10 * number)
    assert recorder.before(1000) == ((0, 0), (4, 40), (8, 80), (12, 120))


def test_too_few_windows_are_refused():
    with pytest.raises(ValueError, match=r"at least 3 .* not 2"):
        PeakRecorder(2)
