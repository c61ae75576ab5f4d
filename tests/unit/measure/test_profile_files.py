"""Finding profiles and logging them."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tensorboard_plugin_memest.measure.profile_files import find_profiles, log_profile
from tensorboard_plugin_memest.measure.xplane import ProfileError
from tests.unit.measure.logged import read_log


@pytest.fixture
def run(tmp_path):
    """A run with one real profile."""
    tf.profiler.experimental.start(str(tmp_path / "run"))
    tf.random.uniform((5000,))
    tf.profiler.experimental.stop()
    return tmp_path / "run"


def test_profiles_are_found_wherever_they_are_and_nothing_else(tmp_path):
    wanted = []
    for where in ("plugins/profile/2026_01_02_00_00_00", "train/plugins/profile/2026_01_01_00_00_00"):
        (tmp_path / where).mkdir(parents=True)
        for name in ("a.xplane.pb", "a.trace.json.gz", "xplane.pb.txt"):
            (tmp_path / where / name).touch()
        wanted.append(str(tmp_path / where / "a.xplane.pb"))
    assert find_profiles(tmp_path) == sorted(wanted)
    assert find_profiles(tmp_path / "nothing") == []


def test_a_directory_s_profiles_are_logged_to_it(run):
    (profile,) = log_profile(run)
    assert read_log(run).profiles == [profile]
    assert "RandomUniform" in profile.timeline.ops


def test_a_file_is_logged_to_the_run_it_lies_in(run, tmp_path):
    (profile,) = log_profile(find_profiles(run)[0])
    assert read_log(run).profiles == [profile]


def test_a_file_is_logged_to_the_run_that_is_named(run, tmp_path):
    (profile,) = log_profile(find_profiles(run)[0], logdir=tmp_path / "elsewhere")
    assert read_log(tmp_path / "elsewhere").profiles == [profile]
    assert read_log(run).records == []


def test_a_file_outside_of_a_run_needs_a_directory_named(run, tmp_path):
    stray = tmp_path / "stray.xplane.pb"
    stray.write_bytes(tf.io.gfile.GFile(find_profiles(run)[0], "rb").read())
    with pytest.raises(ValueError, match=r"stray\.xplane\.pb.* pass logdir"):
        log_profile(stray)


def test_no_profile_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"no \*\.xplane\.pb below"):
        log_profile(tmp_path)


def test_a_broken_profile_is_told_and_nothing_is_logged(run, tmp_path):
    (run / "plugins" / "profile" / "broken").mkdir()
    (run / "plugins" / "profile" / "broken" / "host.xplane.pb").write_text("no profile")
    with pytest.raises(ProfileError, match="broken"):
        log_profile(run)
    assert read_log(run).records == []
