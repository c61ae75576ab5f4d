"""Trains a bird-call classifier on spectrograms: an ordinary Keras script, with a line and a callback of memest's.

python -m demo.train --clips build/demo/clips --logdir runs/small --dense 8

The defaults are the network that started memest: its author counted 2.97 GiB for training it, and 9.29 GiB ran out.
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from scipy.signal import resample_poly

import memest

SAMPLES = 48_000  # 3 seconds at 16 kHz
BATCH_SIZE = 1
LIMIT = "9.29GiB"  # what the author's GPU had free


def read_wav_16k_mono(path: tf.Tensor) -> tf.Tensor:
    """The recording as float32 samples from -1 to 1, 16,000 a second."""
    audio, _ = tf.audio.decode_wav(tf.io.read_file(path))
    mono = tf.reduce_mean(audio, axis=1)
    # 44.1 kHz to 16 kHz is 160 : 441. SciPy brings the low-pass filter that keeps what lies above 8 kHz from folding
    # back; tensorflow-io's resample, which such scripts used to call, has no release for current TensorFlow.
    return tf.numpy_function(lambda wave: resample_poly(wave, 160, 441).astype(np.float32), [mono], tf.float32)


def spectrogram(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """A clip's magnitudes, [1491, 257, 1]: 320 samples a frame, a frame every 32 samples."""
    wave = read_wav_16k_mono(path)[:SAMPLES]
    wave = tf.pad(wave, [[0, SAMPLES - tf.shape(wave)[0]]])
    wave = tf.ensure_shape(wave, [SAMPLES])
    return tf.abs(tf.signal.stft(wave, frame_length=320, frame_step=32))[..., tf.newaxis], label


def make_dataset(clips: Path) -> tf.data.Dataset:
    """Spectrograms and labels (1: a bird), one clip a batch."""
    birds = sorted(str(path) for path in (clips / "bird").glob("*.wav"))
    others = sorted(str(path) for path in (clips / "other").glob("*.wav"))
    labels = [[1.0]] * len(birds) + [[0.0]] * len(others)
    dataset = tf.data.Dataset.from_tensor_slices((birds + others, labels))
    # One batch ahead is enough once the spectrograms are in the cache; each is memory.
    return dataset.map(spectrogram).cache().shuffle(1000, seed=0).batch(BATCH_SIZE).prefetch(1)


def make_model(dense: int = 128, pool: int = 1, optimizer: str = "adam") -> keras.Model:
    """The network, compiled; `pool` > 1 puts a pooling layer of that size before Flatten."""
    layers = [
        keras.Input((1491, 257, 1)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(dense, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
    if pool > 1:
        layers.insert(3, keras.layers.MaxPooling2D(pool))
    model = keras.Sequential(layers)
    # jit_compile=False is what Keras chooses on a CPU, and what memest estimates.
    model.compile(optimizer=optimizer, loss="binary_crossentropy", metrics=["accuracy"], jit_compile=False)
    return model


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", type=Path, required=True, help="folder with bird/*.wav and other/*.wav")
    parser.add_argument("--logdir", required=True, help="folder of this run, for TensorBoard")
    parser.add_argument("--dense", type=int, default=128, help="units of the hidden Dense layer (default: 128)")
    parser.add_argument("--pool", type=int, default=1, help="size of a pooling before Flatten (default: 1, none)")
    parser.add_argument("--optimizer", default="adam", help="name of a Keras optimizer (default: adam)")
    parser.add_argument(
        "--advice",
        type=float,
        default=0,
        metavar="SECONDS",
        help="how long to try what needs less memory, and as long other choices (default: 0, not at all)",
    )
    parser.add_argument("--epochs", type=int, default=3, help="how often to go through the clips (default: 3)")
    return parser


def main() -> None:
    args = argument_parser().parse_args()

    keras.utils.set_random_seed(0)

    dataset = make_dataset(args.clips)
    memest.log_dataset(dataset, logdir=args.logdir)
    model = make_model(args.dense, args.pool, args.optimizer)
    memory = memest.MemoryCallback(
        args.logdir,
        batch_size=BATCH_SIZE,
        limit=LIMIT,
        profile_batch=(3, 5),
        log_model=functools.partial(memest.log_model, advice=args.advice, what_if=args.advice),
    )
    model.fit(dataset, epochs=args.epochs, verbose=2, callbacks=[memory])


if __name__ == "__main__":
    main()
