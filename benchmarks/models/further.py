"""Kinds of networks that are in none of the other families."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from benchmarks.configuration import Build, Configuration, compiled

FAMILY = "further kinds"
CLASSES = tf.TensorSpec((None,), "int64")


class _Swapped(layers.Layer):  # type: ignore[misc]
    """The last two axes exchanged."""

    def call(self, x: Any) -> Any:
        return ops.swapaxes(x, -1, -2)


def _mixer() -> keras.Model:
    image = keras.Input((32, 32, 3))
    x = layers.Reshape((64, 192))(layers.Conv2D(192, 4, strides=4)(image))
    for _ in range(4):
        y = _Swapped()(layers.LayerNormalization()(x))
        y = layers.Dense(64)(layers.Dense(256, activation="gelu")(y))
        x = layers.Add()([x, _Swapped()(y)])
        y = layers.Dense(768, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(192)(y)])
    x = layers.GlobalAveragePooling1D()(x)
    return compiled(keras.Model(image, layers.Dense(100, activation="softmax")(x)), "adamw")


class _Scaled(layers.Layer):  # type: ignore[misc]
    """A factor for each channel."""

    def build(self, shape: Any) -> None:
        self.gamma = self.add_weight(shape=shape[-1:], initializer="ones", name="gamma")

    def call(self, x: Any) -> Any:
        return x * self.gamma


def _convnext() -> keras.Model:
    image = keras.Input((64, 64, 3))
    x = layers.LayerNormalization()(layers.Conv2D(48, 4, strides=4)(image))
    for width in (48, 96):
        if width != 48:
            x = layers.Conv2D(width, 2, strides=2)(layers.LayerNormalization()(x))
        for _ in range(2):
            y = layers.LayerNormalization()(layers.DepthwiseConv2D(7, padding="same")(x))
            y = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))
            x = layers.Add()([x, _Scaled()(y)])
    x = layers.LayerNormalization()(layers.GlobalAveragePooling2D()(x))
    return compiled(keras.Model(image, layers.Dense(200, activation="softmax")(x)), "adam")


def _wavenet() -> keras.Model:
    sound = keras.Input((2000, 1))
    x, sums = layers.Conv1D(32, 2, padding="causal")(sound), []
    for exponent in range(8):
        rate: dict[str, Any] = {"padding": "causal", "dilation_rate": 2**exponent}
        gated = layers.Multiply()([layers.Conv1D(32, 2, activation=kind, **rate)(x) for kind in ("tanh", "sigmoid")])
        sums.append(layers.Conv1D(64, 1)(gated))
        x = layers.Add()([x, layers.Conv1D(32, 1)(gated)])
    y = layers.Conv1D(64, 1, activation="relu")(layers.Activation("relu")(layers.Add()(sums)))
    return compiled(keras.Model(sound, layers.Conv1D(64, 1, activation="softmax")(y)), "rmsprop")


class _Capsules(layers.Layer):  # type: ignore[misc]
    """Capsules that agree about those of the next layer, in three rounds."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[1], 10, shape[2], 16), name="kernel")

    def call(self, x: Any) -> Any:
        votes = ops.einsum("bid,ijde->bije", x, self.kernel)
        logits = ops.zeros(ops.shape(votes)[:3])
        for turn in range(3):
            total = ops.einsum("bij,bije->bje", ops.softmax(logits, axis=2), votes)
            length = ops.sum(ops.square(total), axis=-1, keepdims=True)
            made = total * length / (1 + length) / ops.sqrt(length + 1e-7)
            if turn < 2:
                logits = logits + ops.einsum("bije,bje->bij", votes, made)
        return ops.sqrt(ops.sum(ops.square(made), axis=-1) + 1e-7)


def _capsules() -> keras.Model:
    image = keras.Input((28, 28, 1))
    x = layers.Conv2D(64, 9, activation="relu")(image)
    x = layers.Reshape((-1, 8))(layers.Conv2D(128, 9, strides=2)(x))
    return compiled(keras.Model(image, _Capsules()(x)), "adam")


def _translator() -> keras.Model:
    source, target = keras.Input((30,), dtype="int32"), keras.Input((25,), dtype="int32")
    encoded, state = layers.GRU(256, return_sequences=True, return_state=True)(layers.Embedding(6000, 128)(source))
    decoded = layers.GRU(256, return_sequences=True)(layers.Embedding(6000, 128)(target), initial_state=state)
    found = layers.AdditiveAttention()([decoded, encoded])
    x = layers.Dense(256, activation="tanh")(layers.Concatenate()([decoded, found]))
    return compiled(keras.Model([source, target], layers.Dense(6000, activation="softmax")(x)), "adam")


def _with_helpers() -> keras.Model:
    image = keras.Input((48, 48, 3))
    x, outputs = image, []
    for number, filters in enumerate((32, 64, 128)):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(layers.BatchNormalization()(x))
        side = layers.Dense(128, activation="relu")(layers.GlobalAveragePooling2D()(x))
        outputs.append(layers.Dense(50, activation="softmax", name=f"side{number}")(layers.Dropout(0.3)(side)))
    model = keras.Model(image, outputs)
    return compiled(model, "nadam", ["sparse_categorical_crossentropy"] * 3, loss_weights=[0.3, 0.3, 1.0])


def _clips() -> keras.Model:
    model = keras.Sequential([keras.Input((12, 48, 48, 3))])
    for filters in (16, 32, 64):
        model.add(layers.Conv3D(filters, 3, padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.Activation("relu"))
        model.add(layers.MaxPooling3D((2, 2, 2) if filters > 16 else (1, 2, 2)))
    for part in (layers.GlobalAveragePooling3D(), layers.Dense(20, activation="softmax")):
        model.add(part)
    return compiled(model, keras.optimizers.SGD(momentum=0.9, nesterov=True))


def _separable() -> keras.Model:
    image = keras.Input((64, 64, 3))
    x = layers.Conv2D(32, 3, strides=2, padding="same", use_bias=False)(image)
    for filters in (64, 128, 256):
        short = layers.Conv2D(filters, 1, strides=2, padding="same")(x)
        for _ in range(2):
            x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False)(layers.Activation("relu")(x))
            x = layers.BatchNormalization()(x)
        x = layers.Add()([layers.MaxPooling2D(3, strides=2, padding="same")(x), short])
    return compiled(keras.Model(image, layers.Dense(100, activation="softmax")(layers.GlobalMaxPooling2D()(x))), "adam")


def _squeezed() -> keras.Model:
    image = keras.Input((56, 56, 3))
    x = layers.Conv2D(24, 3, strides=2, padding="same", activation="swish")(image)
    for filters, stride in ((24, 1), (48, 2), (48, 1), (96, 2)):
        before, wide = x, 4 * x.shape[-1]
        x = layers.Activation("swish")(layers.BatchNormalization()(layers.Conv2D(wide, 1, use_bias=False)(x)))
        x = layers.DepthwiseConv2D(5, strides=stride, padding="same", use_bias=False)(x)
        x = layers.Activation("swish")(layers.BatchNormalization()(x))
        gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
        gate = layers.Conv2D(wide, 1, activation="sigmoid")(layers.Conv2D(wide // 16, 1, activation="swish")(gate))
        x = layers.BatchNormalization()(layers.Conv2D(filters, 1, use_bias=False)(layers.Multiply()([x, gate])))
        if stride == 1 and before.shape[-1] == filters:
            x = layers.Add()([before, layers.Dropout(0.2, noise_shape=(None, 1, 1, 1))(x)])
    x = layers.GlobalAveragePooling2D()(x)
    return compiled(keras.Model(image, layers.Dense(120, activation="softmax")(x)), "rmsprop")


def _masked() -> keras.Model:
    words = keras.Input((40,), dtype="int32")
    x = layers.Embedding(20_000, 96, mask_zero=True)(words)
    x = layers.Bidirectional(layers.LSTM(128, return_sequences=True))(x)
    return compiled(keras.Model(words, layers.TimeDistributed(layers.Dense(30, activation="softmax"))(x)), "adam")


def _autoencoder() -> keras.Model:
    model = keras.Sequential([keras.Input((64, 64, 3))])
    for filters in (32, 64, 128):
        model.add(layers.Conv2D(filters, 4, strides=2, padding="same", activation="leaky_relu"))
    for filters in (64, 32):
        model.add(layers.Conv2DTranspose(filters, 4, strides=2, padding="same", activation="leaky_relu"))
    model.add(layers.Conv2DTranspose(3, 4, strides=2, padding="same", activation="sigmoid"))
    return compiled(model, "adamax", "mae")


class _Passed(layers.Layer):  # type: ignore[misc]
    """Messages along the edges of a batch of graphs, summed for each node."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.message, self.update = layers.Dense(units, activation="relu"), layers.Dense(units, activation="relu")

    def build(self, nodes_shape: Any, edges_shape: Any) -> None:
        self.message.build((*nodes_shape[:2], 2 * nodes_shape[2]))
        self.update.build((*nodes_shape[:2], nodes_shape[2] + self.message.units))

    def call(self, nodes: Any, edges: Any) -> Any:
        count = nodes.shape[1]
        flat = ops.reshape(nodes, (-1, nodes.shape[2]))
        places = edges + count * ops.expand_dims(ops.arange(ops.shape(nodes)[0]), (1, 2))
        sources, targets = ops.reshape(places[..., 0], (-1,)), ops.reshape(places[..., 1], (-1,))
        sent = self.message(ops.concatenate([ops.take(flat, sources, axis=0), ops.take(flat, targets, axis=0)], -1))
        got = tf.math.unsorted_segment_sum(sent, targets, ops.shape(flat)[0])
        got = ops.reshape(got, (-1, count, sent.shape[-1]))
        return self.update(ops.concatenate([nodes, got], -1))


def _graphs() -> keras.Model:
    nodes, edges = keras.Input((40, 32)), keras.Input((120, 2), dtype="int32")
    x = nodes
    for _ in range(3):
        x = _Passed(128)(x, edges)
    x = layers.GlobalAveragePooling1D()(x)
    return compiled(keras.Model([nodes, edges], layers.Dense(1)(x)), "adam", "mse")


def _denoiser() -> keras.Model:
    image, time = keras.Input((32, 32, 3)), keras.Input((64,))
    moment = layers.Dense(128, activation="swish")(time)

    def block(x: Any, filters: int) -> Any:
        short = layers.Conv2D(filters, 1)(x) if x.shape[-1] != filters else x
        x = layers.Activation("swish")(layers.GroupNormalization(8)(layers.Conv2D(filters, 3, padding="same")(x)))
        x = layers.Add()([x, layers.Reshape((1, 1, filters))(layers.Dense(filters)(moment))])
        return layers.Add()([layers.Conv2D(filters, 3, padding="same")(x), short])

    x, skips = layers.Conv2D(32, 3, padding="same")(image), []
    for filters in (32, 64):
        x = block(x, filters)
        skips.append(x)
        x = layers.Conv2D(filters, 3, strides=2, padding="same")(x)
    x = block(x, 128)
    for filters in (64, 32):
        x = layers.Concatenate()([layers.UpSampling2D()(x), skips.pop()])
        x = block(x, filters)
    return compiled(keras.Model([image, time], layers.Conv2D(3, 3, padding="same")(x)), "adam", "mse")


def _one(name: str, build: Build, batch_size: int, *, targets: Any = None, vocabulary: int = 2) -> Configuration:
    return Configuration(name, FAMILY, build, batch_size, targets=targets, vocabulary=vocabulary)


CONFIGURATIONS = [
    _one("MLP-Mixer", _mixer, 32),
    _one("ConvNeXt", _convnext, 16),
    _one("WaveNet", _wavenet, 8),
    _one("capsules", _capsules, 32, targets=CLASSES),
    _one("translator, GRU and attention", _translator, 32, vocabulary=6000),
    _one("classifier with helpers", _with_helpers, 32, targets=[CLASSES] * 3),
    _one("clips, Conv3D", _clips, 4),
    _one("separable convolutions", _separable, 16),
    _one("squeeze and excite", _squeezed, 16),
    _one("masked, bidirectional LSTM", _masked, 32, vocabulary=20_000),
    _one("transposed autoencoder", _autoencoder, 32),
    _one("graphs, segment sums", _graphs, 64, vocabulary=40),
    _one("denoising U-Net", _denoiser, 16),
]
