"""Training loops outside Keras: their step functions, which can run eagerly, as a graph, or compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from benchmarks.configuration import Trained

FAMILY = "own loop"

Step = Callable[..., Any]


@dataclass(frozen=True)
class Loop(Trained):
    """A training loop; its name is none of a configuration.

    Attributes:
        make: makes what the loop uses and gives its step function, which takes a batch of each of `inputs`.
        batch_size: examples a step.
        inputs: specs with an open batch; integers are drawn below 2.
    """

    make: Callable[[], Step]
    batch_size: int
    inputs: tuple[tf.TensorSpec, ...]

    @property
    def specs(self) -> list[tf.TensorSpec]:
        """The inputs of one step."""
        return [tf.TensorSpec((self.batch_size, *spec.shape[1:]), spec.dtype) for spec in self.inputs]

    def batch(self) -> list[tf.Tensor]:
        """Tensors for one step."""
        return [_drawn(spec) for spec in self.specs]


def _drawn(spec: tf.TensorSpec) -> tf.Tensor:
    if spec.dtype.is_integer:
        return tf.random.uniform(spec.shape, 0, 2, spec.dtype)
    return tf.random.uniform(spec.shape, dtype=spec.dtype)


def _apply(optimizer: keras.optimizers.Optimizer, tape: tf.GradientTape, loss: Any, model: Any) -> None:
    weights = model.trainable_variables
    optimizer.apply(tape.gradient(loss, weights), weights)


def _mlp(*sizes: int) -> keras.Model:
    hidden = [layers.Dense(size, activation="relu") for size in sizes[1:-1]]
    return keras.Sequential([keras.Input((sizes[0],)), *hidden, layers.Dense(sizes[-1])])


def _images(channels: int, *filters: int) -> keras.Model:
    parts = [layers.Conv2D(units, 3, strides=2, padding="same", activation="relu") for units in filters]
    return keras.Sequential([keras.Input((32, 32, channels)), *parts, layers.Flatten(), layers.Dense(1)])


def _adversarial() -> Step:
    """Two models, two tapes at once, two optimizers."""
    maker = keras.Sequential([keras.Input((64,)), layers.Dense(8 * 8 * 64), layers.Reshape((8, 8, 64))])
    for filters in (64, 32):
        maker.add(layers.Conv2DTranspose(filters, 4, strides=2, padding="same", activation="relu"))
    maker.add(layers.Conv2D(3, 3, padding="same", activation="tanh"))
    judge = _images(3, 32, 64, 128)
    optimizers = keras.optimizers.Adam(1e-4), keras.optimizers.RMSprop(1e-4)
    distance = keras.losses.BinaryCrossentropy(from_logits=True)

    def step(real: tf.Tensor) -> Any:
        noise = tf.random.normal((real.shape[0], 64))
        with tf.GradientTape() as making, tf.GradientTape() as judging:
            made = maker(noise, training=True)
            of_real, of_made = judge(real, training=True), judge(made, training=True)
            fooled = distance(tf.ones_like(of_made), of_made)
            seen = distance(tf.ones_like(of_real), of_real) + distance(tf.zeros_like(of_made), of_made)
        _apply(optimizers[0], making, fooled, maker)
        _apply(optimizers[1], judging, seen, judge)
        return fooled, seen

    return step


def _penalized() -> Step:
    """The gradient of a gradient, and several updates of one model before one of another."""
    maker, judge = _mlp(64, 512, 784), _mlp(784, 1024, 512, 1)
    optimizers = keras.optimizers.Adam(1e-4), keras.optimizers.Adam(1e-4)

    def step(real: tf.Tensor) -> Any:
        for _ in range(2):
            made = maker(tf.random.normal((real.shape[0], 64)))
            with tf.GradientTape() as tape:
                share = tf.random.uniform((real.shape[0], 1))
                mixed = share * real + (1 - share) * made
                with tf.GradientTape() as inner:
                    inner.watch(mixed)
                    judged = judge(mixed)
                slopes = tf.norm(inner.gradient(judged, mixed), axis=1)
                loss = tf.reduce_mean(judge(made)) - tf.reduce_mean(judge(real)) + tf.reduce_mean((slopes - 1) ** 2)
            _apply(optimizers[1], tape, loss, judge)
        with tf.GradientTape() as tape:
            fooled = -tf.reduce_mean(judge(maker(tf.random.normal((real.shape[0], 64)))))
        _apply(optimizers[0], tape, fooled, maker)
        return loss, fooled

    return step


def _two_losses() -> Step:
    """One persistent tape that is asked twice, and results that the step keeps until it ends."""
    trunk, heads = _mlp(256, 1024, 1024), [_mlp(1024, 512, 10), _mlp(1024, 512, 256)]
    optimizer, other = keras.optimizers.Adam(), keras.optimizers.SGD(momentum=0.9)

    def step(x: tf.Tensor, y: tf.Tensor) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            shared = tf.nn.relu(trunk(x, training=True))
            scores, copied = heads[0](shared, training=True), heads[1](shared, training=True)
            classified = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores))
            restored = tf.reduce_mean(tf.square(copied - x))
        optimizer.apply(tape.gradient(classified, trunk.trainable_variables), trunk.trainable_variables)
        for head, loss in zip(heads, (classified, restored), strict=True):
            weights = head.trainable_variables
            gradients = tape.gradient(loss, weights)
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.assign_sub(0.01 * gradient)
        other.apply(tape.gradient(restored, trunk.trainable_variables), trunk.trainable_variables)
        del tape
        return classified, restored

    return step


def _accumulated() -> Step:
    """Gradients of parts of the batch, added up in a list."""
    model = _mlp(512, 2048, 1024, 10)
    optimizer = keras.optimizers.AdamW()

    def step(x: tf.Tensor, y: tf.Tensor) -> Any:
        weights = model.trainable_variables
        total = [tf.zeros_like(weight) for weight in weights]
        for part in range(4):
            rows = slice(part * x.shape[0] // 4, (part + 1) * x.shape[0] // 4)
            with tf.GradientTape() as tape:
                scores = model(x[rows], training=True)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y[rows], scores))
            gradients = tape.gradient(loss, weights)
            total = [old + new / 4 for old, new in zip(total, gradients, strict=True)]
        optimizer.apply(total, weights)
        return loss

    return step


class _Cell(tf.Module):  # type: ignore[misc]
    """A gated cell of plain variables."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal((inputs + units, 2 * units), stddev=0.02))
        self.bias = tf.Variable(tf.zeros((2 * units,)))

    def __call__(self, x: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        gate, value = tf.split(tf.concat([x, state], 1) @ self.kernel + self.bias, 2, axis=1)
        gate = tf.sigmoid(gate)
        return gate * state + (1 - gate) * tf.tanh(value)


def _unrolled() -> Step:
    """Plain variables, a recurrence written as Python's loop, clipping, and momentum by hand."""
    words, cell = tf.Variable(tf.random.normal((5000, 128))), _Cell(128, 256)
    last = tf.Variable(tf.random.normal((256, 5000), stddev=0.02))
    weights = [words, *cell.trainable_variables, last]
    moments = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in weights]

    def step(tokens: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            state, losses = tf.zeros((tokens.shape[0], 256)), []
            for time in range(tokens.shape[1] - 1):
                state = cell(tf.gather(words, tokens[:, time]), state)
                scores = state @ last
                losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(tokens[:, time + 1], scores))
            loss = tf.reduce_mean(tf.stack(losses))
        gradients = [tf.convert_to_tensor(one) for one in tape.gradient(loss, weights)]
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        for weight, moment, gradient in zip(weights, moments, gradients, strict=True):
            moment.assign(0.9 * moment + gradient)
            weight.assign_sub(0.1 * moment)
        return loss

    return step


def _distilled() -> Step:
    """A frozen teacher, and intermediate results that locals hold until the step returns."""
    teacher, student = _images(3, 64, 128, 256), _images(3, 16, 32)
    teacher.trainable = False
    optimizer, mean = keras.optimizers.Nadam(), keras.metrics.Mean()

    def step(x: tf.Tensor) -> Any:
        features, wanted = [], x
        for layer in teacher.layers:
            wanted = layer(wanted, training=False)
            features.append(wanted)
        with tf.GradientTape() as tape:
            given = student(x, training=True)
            loss = tf.reduce_mean(tf.square(given - wanted)) + 1e-4 * tf.add_n(
                [tf.nn.l2_loss(weight) for weight in student.trainable_variables]
            )
        _apply(optimizer, tape, loss, student)
        mean.update_state(loss)
        return loss

    return step


class _Variational(keras.Model):  # type: ignore[misc]
    """Built by its first call."""

    def __init__(self) -> None:
        super().__init__(name="variational")
        self.encoder = keras.Sequential([layers.Dense(1024, activation="gelu"), layers.Dense(64)])
        self.decoder = keras.Sequential([layers.Dense(1024, activation="gelu"), layers.Dense(784)])

    def call(self, x: tf.Tensor) -> Any:
        mean, spread = tf.split(self.encoder(x), 2, axis=-1)
        drawn = mean + tf.exp(spread / 2) * tf.random.normal(tf.shape(mean))
        return self.decoder(drawn), mean, spread


def _built_on_the_way() -> Step:
    model, optimizer = _Variational(), keras.optimizers.Adamax()

    def step(x: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            made, mean, spread = model(x)
            likelihood = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(x, made), axis=-1)
            divergence = -0.5 * tf.reduce_sum(1 + spread - mean**2 - tf.exp(spread), axis=-1)
            loss = tf.reduce_mean(likelihood + divergence)
        _apply(optimizer, tape, loss, model)
        return loss

    return step


def _contrastive() -> Step:
    """One encoder called twice, a matrix of all pairs, and a slow copy of the encoder that is moved by hand."""
    encoder, slow = [_images(1, 32, 64, 64) for _ in range(2)]
    optimizer = keras.optimizers.Lion()

    def step(first: tf.Tensor, second: tf.Tensor) -> Any:
        keys = tf.math.l2_normalize(tf.reshape(slow(second), (first.shape[0], -1)), axis=1)
        with tf.GradientTape() as tape:
            queries = tf.math.l2_normalize(tf.reshape(encoder(first), (first.shape[0], -1)), axis=1)
            scores = tf.matmul(queries, keys, transpose_b=True) / 0.1
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(first.shape[0]), scores))
        _apply(optimizer, tape, loss, encoder)
        for old, new in zip(slow.variables, encoder.variables, strict=True):
            old.assign(0.99 * old + 0.01 * new)
        return loss

    return step


def _attentive() -> Step:
    """A causal transformer that Keras has as one model, clipped gradients, and averages of the weights."""
    tokens = keras.Input((64,), dtype="int32")
    x = layers.Embedding(4000, 256)(tokens)
    for _ in range(2):
        y = layers.MultiHeadAttention(4, 64)(*[layers.LayerNormalization()(x)] * 2, use_causal_mask=True)
        x = layers.Add()([x, y])
        y = layers.Dense(1024, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(256)(y)])
    model = keras.Model(tokens, layers.Dense(4000)(x))
    optimizer = keras.optimizers.Adam(global_clipnorm=1.0, use_ema=True)

    def step(tokens: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            scores = model(tokens[:, :-1], training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tokens[:, 1:], scores))
        _apply(optimizer, tape, loss, model)
        return loss

    return step


def _actor_critic() -> Step:
    """A loop over time in Python, and an update for each of two models from one tape."""
    actor, critic = _mlp(400, 512, 512, 6), _mlp(400, 512, 1)
    optimizers = keras.optimizers.Adam(), keras.optimizers.Adagrad()

    def step(states: tf.Tensor, actions: tf.Tensor, rewards: tf.Tensor) -> Any:
        returns, total = [], tf.zeros_like(rewards[:, 0])
        for time in reversed(range(rewards.shape[1])):
            total = rewards[:, time] + 0.99 * total
            returns.append(total)
        wanted = tf.reshape(tf.stack(returns[::-1], axis=1), (-1, 1))
        flat = tf.reshape(states, (-1, 400))
        with tf.GradientTape(persistent=True) as tape:
            values, scores = critic(flat), actor(flat)
            better = tf.stop_gradient(wanted - values)
            taken = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(actions, (-1,)), scores)
            policy = tf.reduce_mean(taken[:, None] * better)
            error = tf.reduce_mean(keras.losses.huber(wanted, values))
        _apply(optimizers[0], tape, policy, actor)
        _apply(optimizers[1], tape, error, critic)
        return policy, error

    return step


def _spec(*shape: int, dtype: str = "float32") -> tf.TensorSpec:
    return tf.TensorSpec((None, *shape), dtype)


_CLASSES = tf.TensorSpec((None,), "int64")

LOOPS: dict[str, Loop] = {
    loop.name: loop
    for loop in (
        Loop("loop: GAN, two tapes", FAMILY, _adversarial, 64, (_spec(32, 32, 3),)),
        Loop("loop: gradient penalty", FAMILY, _penalized, 128, (_spec(784),)),
        Loop("loop: persistent tape", FAMILY, _two_losses, 512, (_spec(256), _CLASSES)),
        Loop("loop: parts of a batch", FAMILY, _accumulated, 1024, (_spec(512), _CLASSES)),
        Loop("loop: plain recurrence", FAMILY, _unrolled, 32, (_spec(24, dtype="int32"),)),
        Loop("loop: distillation", FAMILY, _distilled, 64, (_spec(32, 32, 3),)),
        Loop("loop: built on the way", FAMILY, _built_on_the_way, 1024, (_spec(784),)),
        Loop("loop: contrastive", FAMILY, _contrastive, 128, (_spec(32, 32, 1), _spec(32, 32, 1))),
        Loop("loop: transformer", FAMILY, _attentive, 16, (_spec(65, dtype="int32"),)),
        Loop(
            "loop: actor and critic",
            FAMILY,
            _actor_critic,
            32,
            (_spec(16, 400), _spec(16, dtype="int32"), _spec(16)),
        ),
    )
}
