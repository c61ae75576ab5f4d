import hashlib
import wave
from pathlib import Path

import pytest

from demo.clips import CLIPS_PER_CLASS, write_clips


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clips(tmp_path_factory.mktemp("demo") / "clips")


def _digests(directory: Path) -> dict[str, str]:
    files = sorted(directory.rglob("*.wav"))
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_both_classes_have_their_clips(clips: Path) -> None:
    assert len(list((clips / "bird").glob("*.wav"))) == CLIPS_PER_CLASS
    assert len(list((clips / "other").glob("*.wav"))) == CLIPS_PER_CLASS


def test_clips_are_stereo_of_16_bits_at_44100_hz(clips: Path) -> None:
    for path in clips.rglob("*.wav"):
        with wave.open(str(path)) as clip:
            assert (clip.getnchannels(), clip.getsampwidth(), clip.getframerate()) == (2, 2, 44_100)


def test_some_clips_are_shorter_than_the_three_seconds_of_the_network_and_some_longer(clips: Path) -> None:
    seconds = []
    for path in clips.rglob("*.wav"):
        with wave.open(str(path)) as clip:
            seconds.append(clip.getnframes() / clip.getframerate())
    assert min(seconds) < 2.9
    assert max(seconds) > 3.1


def test_clips_are_the_same_every_time(clips: Path, tmp_path: Path) -> None:
    again = write_clips(tmp_path / "again")
    assert _digests(again) == _digests(clips)
    assert len(set(_digests(clips).values())) == 2 * CLIPS_PER_CLASS


def test_clips_that_are_there_are_kept(tmp_path: Path) -> None:
    directory = write_clips(tmp_path / "clips", per_class=1)
    (directory / "bird/000.wav").write_text("kept")
    write_clips(directory, per_class=1)
    assert (directory / "bird/000.wav").read_text() == "kept"


def test_what_an_interrupted_run_left_behind_is_replaced(tmp_path: Path) -> None:
    half = tmp_path / "clips.unfinished/bird"
    half.mkdir(parents=True)
    (half / "999.wav").write_text("half a clip")
    directory = write_clips(tmp_path / "clips", per_class=1)
    assert [path.name for path in sorted(directory.rglob("*.wav"))] == ["000.wav", "000.wav"]
    assert not (tmp_path / "clips.unfinished").exists()
