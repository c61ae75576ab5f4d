"""Makes the recordings: bird calls in noise, and noise without a bird, as WAV files.

The calls are rising sweeps with two harmonics. The other clips hold what a microphone outdoors hears as well: a low
hum that wavers, and clicks. All of it follows from the number of the clip, so every machine writes the same files.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.io import wavfile
from scipy.signal import chirp

RATE = 44_100  # Hz
# Few: tf.data keeps the spectrograms, 1.5 MB each, and on a CPU in the same allocator as the tensors of a step. There
# they would change which chunks of memory those get, and with it the measured peaks.
CLIPS_PER_CLASS = 4

Sound = npt.NDArray[np.float64]


def write_clips(directory: Path, per_class: int = CLIPS_PER_CLASS) -> Path:
    """Writes `per_class` clips each into `directory`/bird and `directory`/other, 16-bit stereo at 44.1 kHz.

    The directory appears whole or not at all; one that is there is kept.

    Returns:
        `directory`.
    """
    if directory.is_dir():
        return directory
    unfinished = directory.with_name(f"{directory.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    for label, make in (("bird", _bird), ("other", _other)):
        folder = unfinished / label
        folder.mkdir(parents=True)
        for number in range(per_class):
            rng = np.random.default_rng([ord(label[0]), number])
            wavfile.write(folder / f"{number:03}.wav", RATE, _stereo(make(rng), rng))
    return unfinished.rename(directory)


def _bird(rng: np.random.Generator) -> Sound:
    sound = _background(rng)
    for _ in range(rng.integers(2, 6)):
        duration = rng.uniform(0.15, 0.4)
        low = rng.uniform(1_500, 2_500)
        t = np.arange(int(duration * RATE)) / RATE
        call = sum(
            chirp(t, f0=harmonic * low, t1=duration, f1=harmonic * low * 1.8) / harmonic**2 for harmonic in (1, 2, 3)
        )
        start = rng.integers(len(sound) - len(t))
        sound[start : start + len(t)] += 0.25 * call * np.hanning(len(t))
    return sound


def _other(rng: np.random.Generator) -> Sound:
    sound = _background(rng)
    t = np.arange(len(sound)) / RATE
    sound += 0.15 * np.sin(2 * np.pi * rng.uniform(80, 300) * t + 3 * np.sin(2 * np.pi * rng.uniform(0.5, 3) * t))
    for start in rng.integers(len(sound) - 500, size=rng.integers(3, 12)):
        sound[start : start + 500] += 0.3 * rng.standard_normal(500) * np.exp(-np.arange(500) / 80)
    return sound


def _background(rng: np.random.Generator) -> Sound:
    """Noise of 2.2 to 3.6 seconds: the network takes 3, so that some clips are padded and some are cut."""
    return 0.03 * rng.standard_normal(int(rng.uniform(2.2, 3.6) * RATE))


def _stereo(sound: Sound, rng: np.random.Generator) -> npt.NDArray[np.int16]:
    """Two channels: the second hears the same a little later, and softer or louder."""
    channels = np.stack([sound, rng.uniform(0.6, 1.1) * np.roll(sound, rng.integers(1, 40))], axis=1)
    return np.round(np.clip(channels, -1, 1) * 32_767).astype(np.int16)
