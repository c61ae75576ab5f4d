"""Which batches are profiled, and that each is marked as a step."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tensorboard_plugin_memest.measure.batch_profiler import BatchProfiler, parse_profile_batch
from tensorboard_plugin_memest.measure.profile import read_profile
from tensorboard_plugin_memest.measure.profile_files import find_profiles


@pytest.mark.parametrize(
    ("given", "batches"),
    [(0, None), (5, (5, 5)), ((10, 20), (10, 20)), ([1, 1], (1, 1)), ("7", (7, 7)), ("10,20", (10, 20)), ("0", None)],
)
def test_batches_are_given_as_to_keras(given, batches):
    assert parse_profile_batch(given) == batches


@pytest.mark.parametrize("given", [-1, (2, 1), (0, 3), (1, 2, 3), "a", "1,b", "", 1.5, (1.0, 2.0), None, True, ()])
def test_what_is_no_batch_is_refused_and_repeated(given):
    with pytest.raises(ValueError, match="counted from 1") as refused:
        parse_profile_batch(given)
    assert repr(given) in str(refused.value)


def run_batches(profiler: BatchProfiler, count: int, first_step: int = 0, steps: int = 1) -> list[bool]:
    ended = []
    for batch in range(count):
        profiler.begin(first_step + steps * batch)
        # Twice as large each time: a chunk handed out whole is less than twice its request, so each batch peaks higher.
        tf.random.uniform((10**5 * 2**batch,))
        ended.append(profiler.end())
    return ended


def test_the_batches_asked_for_are_profiled_and_marked_with_their_steps(tmp_path):
    profiler = BatchProfiler(tmp_path, (3, 4))
    assert run_batches(profiler, 6, first_step=100, steps=10) == [False, False, False, True, False, False]
    (path,) = find_profiles(tmp_path)
    assert path.startswith(str(tmp_path / "plugins" / "profile"))
    (profile,) = read_profile(path)
    assert [step.name for step in profile.steps] == ["step 120", "step 130"]
    requested = [item.requested_bytes for item in profile.live_at_peak if item.name == "RandomUniform"]
    assert requested == [4 * 10**5 * 2**3]


def test_none_means_none(tmp_path):
    assert run_batches(BatchProfiler(tmp_path, None), 3) == [False] * 3
    assert find_profiles(tmp_path) == []


def test_a_training_shorter_than_asked_for_ends_the_profile(tmp_path):
    profiler = BatchProfiler(tmp_path, (2, 100))
    assert run_batches(profiler, 3) == [False] * 3
    assert profiler.close()
    assert not profiler.close()
    (profile,) = read_profile(find_profiles(tmp_path)[0])
    assert [step.name for step in profile.steps] == ["step 1", "step 2"]


def test_where_another_profile_runs_it_is_given_up(tmp_path):
    profiler = BatchProfiler(tmp_path / "mine", (1, 2))
    tf.profiler.experimental.start(str(tmp_path / "other"))
    try:
        with pytest.raises(tf.errors.AlreadyExistsError):
            profiler.begin(0)
        assert not profiler.end()
        assert run_batches(profiler, 2) == [False] * 2
    finally:
        tf.profiler.experimental.stop()
    assert len(find_profiles(tmp_path / "other")) == 1
    assert find_profiles(tmp_path / "mine") == []


def test_a_batch_that_was_none_does_not_count(tmp_path):
    profiler = BatchProfiler(tmp_path, (2, 3))
    profiler.begin(0)
    assert not profiler.end()
    profiler.discard()
    profiler.begin(1)
    profiler.discard()
    assert run_batches(profiler, 2, first_step=1) == [False, True]
    assert len(find_profiles(tmp_path)) == 1
