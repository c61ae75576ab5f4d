"""Recording steps: what counts as one, and when it is on disk."""

from __future__ import annotations

import itertools
import math

from tensorboard_plugin_memest.measure.allocator import Found
from tensorboard_plugin_memest.measure.peaks import PeakRecorder
from tensorboard_plugin_memest.measure.recording import TRAIN, Recording
from tensorboard_plugin_memest.memory.measured import MeasuredBeside, MeasuredPeaks, Window
from tests.unit.measure.logged import Fake, read_log


class Clock:
    """Seconds, as told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def record_steps(recording: Recording, count: int = 1) -> None:
    for _ in range(count):
        recording.begin()
        recording.end()
        recording.write_if_due()


def test_each_device_has_its_peaks_its_source_and_what_was_before(tmp_path):
    gpu = Fake([(5, 70), (6, 6), (10, 20), (7, 9), (11, 30)], limit_bytes=100)
    cpu = Fake([(1, 2), (2, 2), (3, 4), (4, 4), (5, 6)], device="CPU:0", source="other")
    recording = Recording(tmp_path, Found((gpu, cpu)))
    record_steps(recording, 2)
    recording.close()
    assert read_log(tmp_path).peaks == {
        "GPU:0": MeasuredPeaks(
            "GPU:0",
            "TensorFlow's BFC allocator",
            70,
            100,
            (Window(0, 0, 20, 10, 6, 10), Window(1, 1, 30, 11, 7, 19)),
        ),
        "CPU:0": MeasuredPeaks("CPU:0", "other", 2, None, (Window(0, 0, 4, 3, 2, 1), Window(1, 1, 6, 5, 4, 1))),
    }
    # The peak so far, then for each step a reset and a reading before it, and a reading after.
    assert gpu.calls == cpu.calls == ["read", "reset", "read", "read", "reset", "read", "read"]


def test_a_step_only_reads_and_what_it_read_is_put_away_for_many_steps_at_once(tmp_path, monkeypatch):
    put_away: list[int] = []
    record = PeakRecorder.record

    def counted(self, start_bytes, peak_bytes, current_bytes, steps=1):
        put_away.append(peak_bytes)
        record(self, start_bytes, peak_bytes, current_bytes, steps)

    monkeypatch.setattr(PeakRecorder, "record", counted)
    readings = [(0, 0), *itertools.chain(*([(1, 1), (2, 1000 + step)] for step in range(100)))]
    recording = Recording(tmp_path, Found((Fake(readings),)), host=lambda: None)
    at_once = []
    for step in range(100):
        recording.begin(kind="evaluate" if step % 3 else TRAIN)
        before = len(put_away)
        recording.end()
        at_once.append(len(put_away) - before)
    assert recording.steps == 34
    # Most steps put nothing away, and none is lost or out of order.
    assert sum(map(bool, at_once)) == 1
    recording.close()
    assert put_away == [1000 + step for step in range(100)]
    log = read_log(tmp_path)
    assert [window.peak_bytes for window in log.peaks["GPU:0"].windows] == [1000 + step for step in range(0, 100, 3)]
    (evaluated,) = (record.peaks for record in log.records if isinstance(record, MeasuredBeside))
    assert [window.peak_bytes for window in evaluated.windows] == [1000 + step for step in range(100) if step % 3]


def test_a_step_tells_when_it_may_be_time_to_write(tmp_path):
    clock = Clock()
    recording = Recording(tmp_path, Found((Fake([(0, 0), *[(1, 1), (1, 2)] * 4]),)), clock=clock, host=lambda: None)
    assert not recording.end()
    recording.begin()
    assert recording.end()  # nothing is written yet
    recording.write_if_due()
    recording.begin()
    assert not recording.end()
    clock.now += 0.09
    recording.begin()
    assert not recording.end()
    clock.now += 0.01
    recording.begin()
    assert recording.end()
    recording.close()


def test_the_host_s_memory_is_read_ten_times_a_second_at_most_and_told_for_all_steps(tmp_path):
    clock = Clock()
    readings: list[int] = []

    def host() -> int:
        readings.append({0: 50, 1: 60}.get(len(readings), 100 * len(readings)))
        return readings[-1]

    recording = Recording(tmp_path, Found(()), clock=clock, host=host)
    recording.begin_epoch(0)
    for seconds in (0, 0.04, 0.04, 0.04, 0.01, 5, 5):
        recording.begin()
        clock.now += seconds
        recording.end()
    recording.begin(kind="evaluate")
    clock.now += 5
    recording.end()
    # When it was made, before the first step and after it, after 0.1 s, and after each slow step: 7 steps, 6 readings.
    assert readings == [50, 60, 200, 300, 400, 500]
    recording.begin(2)
    recording.end()
    recording.close()
    assert readings[6:] == [600]
    (host_,) = (record.peaks for record in read_log(tmp_path).records if isinstance(record, MeasuredBeside))
    assert (host_.before_bytes, host_.steps) == (50, 9)
    assert [(w.first_step, w.last_step, w.start_bytes, w.peak_bytes, w.current_bytes) for w in host_.windows] == [
        (0, 0, 60, 200, 200),
        (1, 3, 200, 300, 300),
        (4, 5, 300, 400, 400),
        (6, 6, 400, 500, 500),
        (7, 8, 500, 600, 600),
    ]


def test_what_the_host_gives_back_between_two_readings_is_in_the_window_s_peak(tmp_path):
    recording = Recording(tmp_path, Found(()), host=iter([10, 900, 30, 20]).__next__, clock=Clock())
    record_steps(recording, 3)
    recording.close()
    host = [record.peaks for record in read_log(tmp_path).records if isinstance(record, MeasuredBeside)][-1]
    assert [(w.first_step, w.last_step, w.peak_bytes, w.current_bytes) for w in host.windows] == [
        (0, 0, 900, 30),
        (1, 2, 30, 20),
    ]


def test_epochs_are_told_with_the_steps_that_they_begin_with(tmp_path):
    recording = Recording(tmp_path, Found((Fake([(0, 0), *[(3, 3), (1, 10)] * 3]),)))
    recording.begin_epoch(5)
    record_steps(recording, 2)
    recording.begin_epoch(6)
    record_steps(recording, 1)
    recording.begin_epoch(7)
    recording.close()
    assert read_log(tmp_path).peaks["GPU:0"].epochs == ((5, 0), (6, 2))


def test_steps_that_run_together_are_one_record_of_all_of_them(tmp_path):
    recording = Recording(tmp_path, Found((Fake([(0, 0), (3, 3), (1, 10), (4, 4), (2, 20)]),)))
    recording.begin(4)
    recording.end()
    record_steps(recording)
    recording.close()
    assert read_log(tmp_path).peaks["GPU:0"].windows == (Window(0, 3, 10, 1, 3, 7), Window(4, 4, 20, 2, 4, 16))
    assert recording.steps == 5


def test_what_turned_out_to_be_no_step_is_not_recorded(tmp_path):
    recording = Recording(tmp_path, Found((Fake([(0, 0), (5, 5), (3, 3), (1, 10), (2, 20)]),)))
    recording.begin()
    recording.discard()
    recording.end()
    assert recording.steps == 0
    record_steps(recording)
    recording.end()
    recording.close()
    assert read_log(tmp_path).peaks["GPU:0"].windows == (Window(0, 0, 10, 1, 3, 7),)


def test_the_first_step_is_on_disk_at_once_and_the_rest_when_doubled_but_not_more_than_once_a_second(tmp_path):
    clock = Clock()
    recording = Recording(tmp_path, Found((Fake([(1, 2)]),)), clock)
    record_steps(recording)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1]
    clock.now += 0.5
    record_steps(recording, 100)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1]
    clock.now += 0.5
    record_steps(recording)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1, 102]
    clock.now += 1
    record_steps(recording, 101)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1, 102]
    record_steps(recording)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1, 102, 204]


def test_slow_steps_are_on_disk_after_ten_seconds(tmp_path):
    clock = Clock()
    recording = Recording(tmp_path, Found((Fake([(1, 2)]),)), clock)
    record_steps(recording, 50)
    clock.now += 1
    record_steps(recording)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1, 51]
    clock.now += 9.9
    record_steps(recording)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1, 51]
    clock.now += 0.1
    record_steps(recording)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1, 51, 53]


def test_an_epoch_s_end_is_written_sooner_and_only_if_there_is_news(tmp_path):
    clock = Clock()
    recording = Recording(tmp_path, Found((Fake([(1, 2)]),)), clock)
    record_steps(recording, 1)
    clock.now += 0.9
    record_steps(recording, 5)
    recording.write_if_due(at_epoch_end=True)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1]
    clock.now += 1.1
    recording.write_if_due(at_epoch_end=True)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1, 6]
    clock.now += 100
    recording.write_if_due(at_epoch_end=True)
    assert [p.steps for p in read_log(tmp_path).all_peaks] == [1, 6]


def test_a_day_of_training_is_a_hundred_records_and_never_older_than_a_tenth(tmp_path):
    clock = Clock()
    recording = Recording(tmp_path, Found((Fake([(1, 2)]),)), clock)
    day = 24 * 3600
    for _ in range(day // 2):
        clock.now += 2
        record_steps(recording)
    ages = [2 * peaks.steps for peaks in read_log(tmp_path).all_peaks]
    assert 50 < len(ages) < 150
    assert all(later - age <= max(10, math.ceil(0.1 * later)) + 2 for age, later in itertools.pairwise(ages))
    assert day - ages[-1] <= 0.1 * day + 2


def test_nothing_is_lost_however_many_steps(tmp_path):
    steps = 5000
    readings = [(step, 5000 + (step * 7919) % 100_003) for step in range(steps)]
    starts = [(step // 2, step // 2) for step in range(steps)]
    both = [reading for pair in zip(starts, readings, strict=True) for reading in pair]
    recording = Recording(tmp_path, Found((Fake([(0, 0), *both]),)))
    record_steps(recording, steps)
    recording.close()
    peaks = read_log(tmp_path).peaks["GPU:0"]
    assert peaks.steps == steps
    assert peaks.peak_bytes == max(peak for _, peak in readings)
    rises = [peak - max(start, current) for (current, peak), (start, _) in zip(readings, starts, strict=True)]
    assert max(window.rise_bytes for window in peaks.windows) == max(rises)
    assert len(peaks.windows) <= 512


def test_notes_are_written_with_the_next_record_once_and_again_when_they_change(tmp_path):
    recording = Recording(tmp_path, Found((), ("CPU:0: no statistics.",)))
    record_steps(recording)
    assert read_log(tmp_path).notes == ("CPU:0: no statistics.",)
    recording.note("a")
    recording.note("a")
    recording.write()
    assert read_log(tmp_path).notes == ("CPU:0: no statistics.", "a")
    recording.withdraw("a")
    recording.withdraw("never said")
    recording.close()
    assert read_log(tmp_path).notes == ("CPU:0: no statistics.",)
    written = len(read_log(tmp_path).records)
    recording.close()
    assert len(read_log(tmp_path).records) == written


def test_a_run_in_which_nothing_happened_leaves_nothing(tmp_path):
    recording = Recording(tmp_path, Found((Fake([(1, 2)]),)))
    recording.open()
    recording.close()
    assert list(tmp_path.iterdir()) == []


def test_after_closing_it_goes_on(tmp_path):
    recording = Recording(tmp_path, Found((Fake([(0, 0), (3, 3), (1, 10), (4, 4), (2, 20)]),)))
    record_steps(recording)
    recording.close()
    record_steps(recording)
    recording.close()
    assert read_log(tmp_path).peaks["GPU:0"].windows == (Window(0, 0, 10, 1, 3, 7), Window(1, 1, 20, 2, 4, 16))


def test_a_step_that_died_is_recorded_up_to_there_and_told(tmp_path):
    recording = Recording(tmp_path, Found((Fake([(0, 0), (3, 3), (1, 10), (4, 4), (2, 20)]),)))
    record_steps(recording)
    recording.begin()
    recording.end_with(MemoryError("no more"))
    recording.close()
    logged = read_log(tmp_path)
    assert logged.peaks["GPU:0"].windows == (Window(0, 0, 10, 1, 3, 7), Window(1, 1, 20, 2, 4, 16))
    assert logged.notes == (
        "Training ended inside step 1 with MemoryError; the peak of that step is what was in use until then.",
    )


def test_an_error_between_steps_is_no_step(tmp_path):
    recording = Recording(tmp_path, Found((Fake([(0, 0), (3, 3), (1, 10), (4, 4), (2, 20)]),)))
    record_steps(recording)
    recording.end_with(MemoryError("no more"))
    recording.close()
    assert read_log(tmp_path).peaks["GPU:0"].steps == 1
    assert read_log(tmp_path).notes == ()
