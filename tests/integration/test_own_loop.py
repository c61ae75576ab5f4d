"""Steps of real training loops that nobody marks."""

from __future__ import annotations

from collections.abc import Callable

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.measure.own_loop import OwnLoop


class Heard:
    """Notes down what it is told."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.begun = self.applied = 0
        self.failures: list[str] = []

    def may_begin(self) -> None:
        self.begun += 1

    def applies(self) -> None:
        self.applied += 1

    def ended(self, steps: int) -> None:
        self.steps.append(steps)

    def failed(self, error: Exception) -> None:
        self.failures.append(type(error).__name__)


@pytest.fixture
def heard() -> Heard:
    return Heard()


def trainer(optimizer: keras.optimizers.Optimizer) -> Callable[[], None]:
    variable = keras.Variable([1.0, 2.0])

    def train() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable.value**2)
        optimizer.apply(tape.gradient(loss, [variable.value]), [variable])

    return train


@pytest.mark.parametrize("compiled", [True, False])
def test_each_call_that_applies_an_optimizer_is_a_step(heard, compiled):
    train = trainer(keras.optimizers.SGD(0.1))
    train = tf.function(train) if compiled else train
    ask = tf.function(lambda: tf.zeros(3))
    loop = OwnLoop(heard)
    with loop.on():
        for _ in range(3):
            train()
            ask()
            assert not loop.is_in_step
        with loop.paused():
            train()
    train()
    assert heard.steps == [1, 1, 1]
    # Nobody knows before that what is asked is no step.
    assert heard.begun == 6


def test_steps_under_a_strategy_are_counted(heard):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        train = trainer(keras.optimizers.SGD())
        step = tf.function(lambda: strategy.run(train))
        with OwnLoop(heard).on():
            step()
            step()
    assert heard.steps == [1, 1]


def test_the_optimizer_that_is_applied_most_often_counts(heard):
    often, seldom = (tf.function(trainer(optimizer)) for optimizer in (keras.optimizers.Adam(), keras.optimizers.SGD()))

    @tf.function
    def several():
        for _ in tf.range(5):
            train()

    train = trainer(keras.optimizers.RMSprop())
    with OwnLoop(heard).on():
        for _ in range(2):
            often()
            often()
            seldom()
    assert heard.steps == [1, 1, 0, 1, 1, 0]
    with OwnLoop(heard).on():
        several()
    assert heard.steps[6:] == [5]


def test_keras_own_batches_are_steps_and_evaluation_is_none(heard):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    x, y = tf.ones((8, 4)), tf.ones((8, 3))
    with OwnLoop(heard).on():
        for _ in range(2):
            model.train_on_batch(x, y)
            model.test_on_batch(x, y)
        model(x)
    assert heard.steps == [1, 1]


def test_memory_that_runs_out_is_told_where_an_optimizer_is_there_and_goes_on_unchanged(heard):
    def fail() -> None:
        tf.debugging.assert_less(tf.random.uniform(()), -1.0, "OOM when allocating tensor with shape[7] and type float")

    train = trainer(keras.optimizers.SGD())

    @tf.function
    def step() -> None:
        fail()
        train()

    with OwnLoop(heard).on():
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.function(fail)()
        assert heard.failures == []
        assert heard.applied == 0
        with pytest.raises(tf.errors.InvalidArgumentError):
            step()
        # That it was a step was known before it died.
        assert heard.applied >= 1
    assert heard.failures == ["InvalidArgumentError"]
    assert heard.steps == []


def test_what_was_wrapped_is_put_back(heard):
    before = (keras.optimizers.Optimizer.apply, tf.GradientTape.__enter__, type(tf.function(lambda: 0)).__call__)
    with OwnLoop(heard).on():
        assert keras.optimizers.Optimizer.apply is not before[0]
    assert (
        keras.optimizers.Optimizer.apply,
        tf.GradientTape.__enter__,
        type(tf.function(lambda: 0)).__call__,
    ) == before
