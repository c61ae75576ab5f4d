"""Generative models with train steps of their own: autoencoders, GANs, diffusion."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from benchmarks.configuration import Build, Configuration, compiled


class _Variational(keras.Model):  # type: ignore[misc]
    def __init__(self, encoder: keras.Model, decoder: keras.Model, width: int) -> None:
        super().__init__()
        self.encoder, self.decoder, self.width = encoder, decoder, width
        self.noise = keras.random.SeedGenerator(1)
        self.total = keras.metrics.Mean(name="total")

    @property
    def metrics(self) -> list[Any]:
        return [self.total]

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape() as tape:
            mean, log_variance = ops.split(self.encoder(data, training=True), 2, axis=-1)
            drawn = keras.random.normal(ops.shape(mean), seed=self.noise)
            made = self.decoder(mean + ops.exp(0.5 * log_variance) * drawn, training=True)
            likelihood = ops.mean(ops.sum(keras.losses.binary_crossentropy(data, made), axis=(1, 2)))
            divergence = -0.5 * (1 + log_variance - ops.square(mean) - ops.exp(log_variance))
            loss = likelihood + ops.mean(ops.sum(divergence, axis=1))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        self.total.update_state(loss)
        return {"total": self.total.result()}


def _variational() -> keras.Model:
    encoder = keras.Sequential([keras.Input((32, 32, 1))])
    for filters in (32, 64):
        encoder.add(layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu"))
    for part in (layers.Flatten(), layers.Dense(256, activation="relu"), layers.Dense(32)):
        encoder.add(part)
    decoder = keras.Sequential([keras.Input((16,)), layers.Dense(8 * 8 * 64, activation="relu")])
    decoder.add(layers.Reshape((8, 8, 64)))
    for filters in (64, 32):
        decoder.add(layers.Conv2DTranspose(filters, 3, strides=2, padding="same", activation="relu"))
    decoder.add(layers.Conv2DTranspose(1, 3, padding="same", activation="sigmoid"))
    model = _Variational(encoder, decoder, 16)
    model.compile("adam", jit_compile=False)
    return model


def _variational_dense() -> keras.Model:
    hidden = [keras.Input((28, 28, 1)), layers.Flatten(), layers.Dense(1024, activation="relu")]
    encoder = keras.Sequential([*hidden, layers.Dense(64)])
    parts = [keras.Input((32,)), layers.Dense(1024, activation="relu"), layers.Dense(784, activation="sigmoid")]
    model = _Variational(encoder, keras.Sequential([*parts, layers.Reshape((28, 28, 1))]), 32)
    model.compile("rmsprop", jit_compile=False)
    return model


class _Adversarial(keras.Model):  # type: ignore[misc]
    def __init__(self, generator: keras.Model, discriminator: keras.Model, width: int) -> None:
        super().__init__()
        self.generator, self.discriminator, self.width = generator, discriminator, width
        self.noise = keras.random.SeedGenerator(1)

    def compile(self, generator_optimizer: Any, discriminator_optimizer: Any) -> None:
        super().compile(jit_compile=False)
        self.generator_optimizer = generator_optimizer
        self.discriminator_optimizer = discriminator_optimizer
        self.distance = keras.losses.BinaryCrossentropy(from_logits=True)

    def _drawn(self, data: Any) -> Any:
        return keras.random.normal((ops.shape(data)[0], self.width), seed=self.noise)

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape() as tape:
            fake = self.generator(self._drawn(data), training=True)
            real_scores = self.discriminator(data, training=True)
            fake_scores = self.discriminator(fake, training=True)
            judged = self.distance(ops.ones_like(real_scores), real_scores)
            judged += self.distance(ops.zeros_like(fake_scores), fake_scores)
        weights = self.discriminator.trainable_weights
        self.discriminator_optimizer.apply_gradients(zip(tape.gradient(judged, weights), weights, strict=True))
        with tf.GradientTape() as tape:
            scores = self.discriminator(self.generator(self._drawn(data), training=True), training=True)
            fooled = self.distance(ops.ones_like(scores), scores)
        weights = self.generator.trainable_weights
        self.generator_optimizer.apply_gradients(zip(tape.gradient(fooled, weights), weights, strict=True))
        return {"judged": judged, "fooled": fooled}


def _convolutional_gan() -> keras.Model:
    generator = keras.Sequential([keras.Input((64,)), layers.Dense(8 * 8 * 128), layers.Reshape((8, 8, 128))])
    for filters in (128, 64):
        generator.add(layers.Conv2DTranspose(filters, 4, strides=2, padding="same", use_bias=False))
        generator.add(layers.BatchNormalization())
        generator.add(layers.LeakyReLU())
    generator.add(layers.Conv2D(3, 5, padding="same", activation="tanh"))
    discriminator = keras.Sequential([keras.Input((32, 32, 3))])
    for filters in (64, 128):
        discriminator.add(layers.Conv2D(filters, 4, strides=2, padding="same"))
        discriminator.add(layers.LeakyReLU())
        discriminator.add(layers.Dropout(0.3))
    discriminator.add(layers.Flatten())
    discriminator.add(layers.Dense(1))
    model = _Adversarial(generator, discriminator, 64)
    model.compile(keras.optimizers.Adam(1e-4, beta_1=0.5), keras.optimizers.Adam(1e-4, beta_1=0.5))
    return model


def _dense_gan(width: int) -> Build:
    def build() -> keras.Model:
        parts = [keras.Input((128,)), layers.Dense(width, activation="relu"), layers.Dense(3072, activation="tanh")]
        judge = [keras.Input((3072,)), layers.Dense(width, activation="relu"), layers.Dense(1)]
        model = _Adversarial(keras.Sequential(parts), keras.Sequential(judge), 128)
        model.compile(keras.optimizers.RMSprop(1e-4), keras.optimizers.SGD(1e-3, momentum=0.9))
        return model

    return build


class _Diffusion(keras.Model):  # type: ignore[misc]
    def __init__(self, network: keras.Model) -> None:
        super().__init__()
        self.network = network
        self.noise = keras.random.SeedGenerator(1)

    def train_step(self, data: Any) -> Any:
        noise = keras.random.normal(ops.shape(data), seed=self.noise)
        time = keras.random.uniform((ops.shape(data)[0], 1, 1, 1), seed=self.noise)
        mixed = ops.cos(1.5 * time) * data + ops.sin(1.5 * time) * noise
        with tf.GradientTape() as tape:
            loss = ops.mean(ops.abs(noise - self.network([mixed, time], training=True)))
        gradients = tape.gradient(loss, self.network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_weights, strict=True))
        return {"loss": loss}


def _diffusion() -> keras.Model:
    image, time = keras.Input((32, 32, 3)), keras.Input((1, 1, 1))
    embedded = layers.UpSampling2D(32)(layers.Dense(16, activation="swish")(time))
    x = layers.Concatenate()([layers.Conv2D(32, 1)(image), embedded])
    skips = []
    for filters in (32, 64):
        y = layers.Conv2D(filters, 3, padding="same", activation="swish")(layers.BatchNormalization()(x))
        x = layers.Conv2D(filters, 1)(x) + layers.Conv2D(filters, 3, padding="same")(y)
        skips.append(x)
        x = layers.AveragePooling2D(2)(x)
    for filters in (64, 32):
        x = layers.Concatenate()([layers.UpSampling2D(interpolation="bilinear")(x), skips.pop()])
        x = layers.Conv2D(filters, 3, padding="same", activation="swish")(x)
    model = _Diffusion(keras.Model([image, time], layers.Conv2D(3, 1, kernel_initializer="zeros")(x)))
    model.compile(keras.optimizers.AdamW(1e-3, use_ema=True), jit_compile=False)
    return model


def _autoencoder() -> keras.Model:
    parts = [keras.Input((64, 64, 3))]
    for filters in (32, 64, 16):
        parts += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
    for filters in (16, 64, 32):
        parts += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.UpSampling2D()]
    return compiled(keras.Sequential([*parts, layers.Conv2D(3, 3, padding="same")]), "adam", "mse")


def _of(name: str, build: Build, batch_size: int, *shape: int) -> Configuration:
    return Configuration(name, "generative", build, batch_size, tf.TensorSpec((None, *shape)), ())


CONFIGURATIONS = [
    _of("VAE, convolutional, batch 32", _variational, 32, 32, 32, 1),
    _of("VAE, dense, RMSprop, batch 64", _variational_dense, 64, 28, 28, 1),
    _of("GAN, convolutional, batch 16", _convolutional_gan, 16, 32, 32, 3),
    _of("GAN, dense, two optimizers, batch 64", _dense_gan(1024), 64, 3072),
    _of("GAN, dense, large, batch 16", _dense_gan(5120), 16, 3072),
    _of("diffusion, EMA, batch 8", _diffusion, 8, 32, 32, 3),
    Configuration("autoencoder, batch 16", "generative", _autoencoder, 16),
]
