from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from scipy.io import wavfile

from demo.clips import RATE, write_clips
from demo.train import BATCH_SIZE, make_dataset, make_model, read_wav_16k_mono, spectrogram


def _tone(path: Path, frequencies: tuple[float, float], seconds: float) -> str:
    """A stereo clip with one tone a channel; gives its path."""
    t = np.arange(int(seconds * RATE)) / RATE
    channels = np.stack([0.5 * np.sin(2 * np.pi * frequency * t) for frequency in frequencies], axis=1)
    wavfile.write(path, RATE, np.round(channels * 32_767).astype(np.int16))
    return str(path)


def test_resampling_keeps_the_length_in_seconds(tmp_path: Path) -> None:
    wave = read_wav_16k_mono(_tone(tmp_path / "tone.wav", (440, 440), 2.5))
    assert wave.dtype == tf.float32
    assert wave.shape == (40_000,)


def test_both_channels_are_heard_at_their_pitch_and_half_their_loudness(tmp_path: Path) -> None:
    wave = read_wav_16k_mono(_tone(tmp_path / "tone.wav", (1_000, 3_000), 2)).numpy()
    t = np.arange(len(wave)) / 16_000
    for frequency in (1_000, 3_000):
        amplitude = 2 * abs(np.mean(wave * np.exp(-2j * np.pi * frequency * t)))
        assert amplitude == pytest.approx(0.25, rel=0.02)


def test_what_lies_above_8_khz_does_not_fold_back(tmp_path: Path) -> None:
    wave = read_wav_16k_mono(_tone(tmp_path / "tone.wav", (11_000, 11_000), 2)).numpy()
    assert np.abs(wave[100:-100]).max() < 0.01


def test_a_spectrogram_has_the_founding_shape_and_its_tone_in_the_right_place(tmp_path: Path) -> None:
    image, label = spectrogram(_tone(tmp_path / "tone.wav", (2_000, 2_000), 4), 1.0)
    assert image.shape == (1491, 257, 1)
    assert image.dtype == tf.float32
    assert label == 1.0
    # 257 frequencies from 0 to 8000 Hz.
    assert set(np.argmax(image[..., 0], axis=1)) == {2_000 * 256 // 8_000}


def test_a_short_clip_is_padded_with_silence(tmp_path: Path) -> None:
    image, _ = spectrogram(_tone(tmp_path / "tone.wav", (2_000, 2_000), 1.5), 1.0)
    assert image.shape == (1491, 257, 1)
    loudest = np.max(image[..., 0], axis=1)
    # 24,000 samples of sound; the last frame that touches them starts at 23,999.
    assert loudest[:700].min() > 1
    assert loudest[751:].max() == 0


def test_the_dataset_gives_every_clip_once_with_its_label(tmp_path: Path) -> None:
    dataset = make_dataset(write_clips(tmp_path / "clips", per_class=3))
    batches = list(dataset)
    assert dataset.element_spec[0].shape == (None, 1491, 257, 1)
    assert [images.shape for images, _ in batches] == [(BATCH_SIZE, 1491, 257, 1)] * 6
    assert sorted(float(labels[0, 0]) for _, labels in batches) == [0, 0, 0, 1, 1, 1]
    assert len({images.numpy().tobytes() for images, _ in batches}) == 6


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [({}, 770_482_865), ({"dense": 8}, 48_157_505), ({"pool": 5}, 30_415_537)],
    ids=["as-asked", "small", "fixed"],
)
def test_the_models_have_their_sizes(arguments: dict[str, int], parameters: int) -> None:
    # In a graph variables get no memory; the first would fill 2.87 GiB.
    with tf.Graph().as_default():
        assert make_model(**arguments).count_params() == parameters
