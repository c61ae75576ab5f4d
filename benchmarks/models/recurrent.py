"""Recurrent networks."""

from __future__ import annotations

import keras
from keras import layers

from benchmarks.configuration import Build, Configuration, compiled


def _lstm_and_gru() -> keras.Model:
    parts = [layers.LSTM(512, return_sequences=True), layers.GRU(256), layers.Dense(10, activation="softmax")]
    return compiled(keras.Sequential([keras.Input((48, 256)), *parts]))


def _lstm(units: int, steps: int, optimizer: str = "adam") -> Build:
    def build() -> keras.Model:
        parts = [keras.Input((steps, 64)), layers.LSTM(units), layers.Dense(1)]
        return compiled(keras.Sequential(parts), optimizer, "mse")

    return build


def _bidirectional() -> keras.Model:
    parts = [keras.Input((64,), dtype="int32"), layers.Embedding(10_000, 128)]
    parts += [layers.Bidirectional(layers.LSTM(192, return_sequences=True)), layers.Bidirectional(layers.GRU(128))]
    return compiled(keras.Sequential([*parts, layers.Dense(1, activation="sigmoid")]), "adam", "binary_crossentropy")


def _character_model() -> keras.Model:
    parts = [keras.Input((100,), dtype="int32"), layers.Embedding(96, 128)]
    parts += [layers.GRU(512, return_sequences=True), layers.Dense(96, activation="softmax")]
    return compiled(keras.Sequential(parts), "rmsprop")


def _simple() -> keras.Model:
    parts = [keras.Input((60, 32)), layers.SimpleRNN(512, return_sequences=True), layers.SimpleRNN(512)]
    return compiled(keras.Sequential([*parts, layers.Dense(4)]), "sgd", "mse")


def _masked() -> keras.Model:
    parts = [keras.Input((50,), dtype="int32"), layers.Embedding(20_000, 96, mask_zero=True), layers.LSTM(256)]
    return compiled(keras.Sequential([*parts, layers.Dense(5, activation="softmax")]), "adamw")


def _dropping() -> keras.Model:
    parts = [keras.Input((40, 48)), layers.GRU(384, dropout=0.2, recurrent_dropout=0.2, return_sequences=True)]
    parts += [layers.GRU(384, dropout=0.2), layers.Dense(12, activation="softmax")]
    return compiled(keras.Sequential(parts))


def _video() -> keras.Model:
    parts = [keras.Input((10, 32, 32, 1)), layers.ConvLSTM2D(24, 3, padding="same", return_sequences=True)]
    parts += [layers.BatchNormalization(), layers.ConvLSTM2D(24, 3, padding="same"), layers.Conv2D(1, 1)]
    return compiled(keras.Sequential(parts), "adam", "mse")


def _frames() -> keras.Model:
    parts = [keras.Input((8, 48, 48, 3))]
    parts += [layers.TimeDistributed(layers.Conv2D(16, 3, activation="relu"))]
    parts += [layers.TimeDistributed(layers.MaxPooling2D(4)), layers.TimeDistributed(layers.Flatten())]
    return compiled(keras.Sequential([*parts, layers.LSTM(256), layers.Dense(10, activation="softmax")]))


def _of(name: str, build: Build, batch_size: int, vocabulary: int = 2) -> Configuration:
    return Configuration(name, "recurrent", build, batch_size, vocabulary=vocabulary)


CONFIGURATIONS = [
    _of("LSTM and GRU, batch 16", _lstm_and_gru, 16),
    _of("LSTM 768, batch 32", _lstm(768, 30), 32),
    _of("LSTM 1024, SGD, batch 1", _lstm(1024, 50, "sgd"), 1),
    _of("LSTM 2048, Adam, batch 8", _lstm(2048, 12), 8),
    _of("bidirectional LSTM and GRU, batch 16", _bidirectional, 16, 10_000),
    _of("character GRU, RMSprop, batch 16", _character_model, 16, 96),
    _of("SimpleRNN twice, SGD, batch 64", _simple, 64),
    _of("masked LSTM, batch 32", _masked, 32, 20_000),
    _of("GRU with recurrent dropout, batch 32", _dropping, 32),
    _of("ConvLSTM2D, batch 4", _video, 4),
    _of("TimeDistributed CNN and LSTM, batch 4", _frames, 4),
]
