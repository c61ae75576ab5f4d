"""Prints what estimating models of all kinds of Keras' layers allocates, in JSON. A process of its own."""

from __future__ import annotations

import json

import keras
import tensorflow as tf

import memest

L = keras.layers


def _through(x, *chain):
    for layer in chain:
        x = layer(x)
    return x


def images():
    inputs = keras.Input((16, 16, 3))
    x = _through(
        inputs,
        *(
            L.Rescaling(1 / 255),
            L.Normalization(mean=[0.0] * 3, variance=[1.0] * 3),
            L.CenterCrop(14, 14),
            L.Resizing(12, 12),
        ),
        *(
            L.RandomFlip(),
            L.RandomRotation(0.1),
            L.RandomZoom(0.1),
            L.RandomTranslation(0.1, 0.1),
            L.RandomContrast(0.1),
        ),
        *(L.RandomBrightness(0.1), L.RandomCrop(12, 12), L.ZeroPadding2D(1), L.Cropping2D(1), L.GaussianNoise(0.1)),
        *(L.Conv2D(4, 3, padding="same"), L.BatchNormalization(), L.PReLU(), L.DepthwiseConv2D(3, padding="same")),
        *(L.GroupNormalization(2), L.SeparableConv2D(4, 3, padding="same"), L.SpatialDropout2D(0.1), L.MaxPooling2D()),
        *(L.Conv2DTranspose(4, 3, padding="same"), L.UpSampling2D(), L.AveragePooling2D(2), L.UnitNormalization()),
        *(L.LayerNormalization(), L.LeakyReLU(), L.GaussianDropout(0.1), L.Permute((2, 1, 3))),
    )
    x = L.Concatenate()([L.GlobalAveragePooling2D()(x), L.GlobalMaxPooling2D()(x), L.Flatten()(x)])
    x = _through(
        x, L.Dense(8, activation="gelu"), L.Dropout(0.1), L.AlphaDropout(0.1), L.Reshape((2, 4)), L.ELU(), L.Flatten()
    )
    return keras.Model(inputs, L.Add()([L.Dense(2)(x), L.EinsumDense("ab,bc->ac", 2)(x)]))


def sequences():
    inputs = keras.Input((4,), dtype="int32")
    x = L.Embedding(20, 8, mask_zero=True)(inputs)
    x = L.Bidirectional(L.LSTM(4, return_sequences=True))(x)
    x = L.GRU(8, return_sequences=True, dropout=0.1)(x)
    x = L.SimpleRNN(8, return_sequences=True, recurrent_dropout=0.1)(x)
    x = L.RNN(L.StackedRNNCells([L.LSTMCell(8), L.GRUCell(8)]), return_sequences=True)(x)
    return keras.Model(
        inputs, _through(x, L.TimeDistributed(L.Dense(3)), L.Flatten(), L.RepeatVector(2), L.Flatten(), L.Dense(2))
    )


def attention():
    inputs = keras.Input((4, 8))
    x = L.MultiHeadAttention(2, 4, dropout=0.1)(inputs, inputs, use_causal_mask=True)
    x = L.GroupQueryAttention(4, 4, 2)(x, x)
    x = L.Average()([L.Attention()([x, inputs]), L.AdditiveAttention()([x, inputs])])
    x = _through(
        x, L.RMSNormalization(), L.Conv1D(8, 2, padding="causal"), L.SpectralNormalization(L.Dense(8)), L.Softmax()
    )
    x = L.Dot(2)([x, inputs])
    return keras.Model(inputs, L.Dense(2)(L.Flatten()(x)))


def volumes():
    inputs = keras.Input((4, 6, 6, 2))
    x = L.ConvLSTM2D(3, 3, padding="same", return_sequences=True)(inputs)
    x = _through(x, L.Conv3D(3, 3, padding="same"), L.MaxPooling3D(2), L.UpSampling3D(2), L.Flatten(), L.Dense(2))
    return keras.Model(inputs, x)


def categories():
    numbers, words = keras.Input((3,), dtype="int32"), keras.Input((2,), dtype="float32")
    x = L.Concatenate()(
        [
            L.CategoryEncoding(5, output_mode="multi_hot")(numbers),
            L.CategoryEncoding(4, output_mode="multi_hot")(L.Discretization(bin_boundaries=[0.0, 0.5, 1.0])(words)),
            L.Flatten()(L.Embedding(9, 2)(L.Hashing(9)(numbers))),
        ]
    )
    return keras.Model([numbers, words], L.Dense(2)(x))


def lookups():
    inputs = keras.Input((1,), dtype="string")
    numbers = L.StringLookup(vocabulary=["a", "b"])(inputs)
    words = L.TextVectorization(vocabulary=["a", "b"], output_sequence_length=3)(inputs)
    x = L.Concatenate()([numbers, words])
    return keras.Model(inputs, L.Dense(2)(L.Flatten()(L.Embedding(8, 2)(x))))


def main() -> None:
    found = {}
    for build in (images, sequences, attention, volumes, categories, lookups):

        def compiled(build=build):
            model = build()
            model.compile("adam", "mse", jit_compile=False)
            return model

        estimate = memest.estimate(compiled, batch_size=2)
        info = tf.config.experimental.get_memory_info("CPU:0")
        found[build.__name__] = {
            "estimate": estimate.peak_bytes,
            "current": info["current"],
            "peak of the process": info["peak"],
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
