"""Models compiled as the caller of an estimate wants them."""

from __future__ import annotations

import keras
import pytest

from tensorboard_plugin_memest.estimation.given import Given, compile_as_given
from tensorboard_plugin_memest.memory.errors import UsageError


def mlp() -> keras.Model:
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)], name="mlp")


def compiled(**options) -> keras.Model:
    model = mlp()
    model.compile(**{"optimizer": "adam", "loss": "mae", **options})
    return model


def test_a_compiled_model_stays_as_it_is():
    model = compiled()
    before = dict(vars(model))
    assert compile_as_given(model, Given(batch_size=3)) == []
    assert vars(model) == before


def test_a_model_without_an_optimizer_is_refused_with_how_to():
    with pytest.raises(UsageError, match=r"The model 'mlp' has no optimizer.*optimizer='adam', loss='mse'"):
        compile_as_given(mlp(), Given())
    with pytest.raises(UsageError, match="has no optimizer"):
        compile_as_given(mlp(), Given(loss="mse"))


def test_an_optimizer_alone_assumes_a_loss_and_says_so():
    model = mlp()
    (assumed,) = compile_as_given(model, Given(optimizer="sgd"))
    assert "mean squared error was assumed. Pass loss=" in assumed
    assert (type(model.optimizer).__name__, model.loss) == ("SGD", "mse")


def test_what_was_given_wins_over_what_the_model_was_compiled_with():
    model = compiled()
    assert compile_as_given(model, Given(optimizer="sgd", loss="mse")) == []
    assert (type(model.optimizer).__name__, model.loss) == ("SGD", "mse")


def test_another_optimizer_leaves_everything_else():
    model = compiled(loss_weights=[0.3], metrics=["mse"], steps_per_execution=3, jit_compile=True)
    loss, metrics = model._compile_loss, model._compile_metrics
    compile_as_given(model, Given(optimizer="sgd"))
    assert type(model.optimizer).__name__ == "SGD"
    assert (model._compile_loss, model._compile_metrics, model.loss) == (loss, metrics, "mae")
    assert (model.steps_per_execution, model.jit_compile) == (3, True)


def test_another_loss_leaves_everything_else():
    model = compiled(metrics=["mse"], run_eagerly=True)
    optimizer, metrics = model.optimizer, model._compile_metrics
    compile_as_given(model, Given(loss="mse"))
    assert (model.optimizer, model._compile_metrics, model.run_eagerly) == (optimizer, metrics, True)
    assert model._compile_loss._user_loss == "mse"


@pytest.mark.parametrize(
    ("given", "received"),
    [
        (Given(optimizer="adamm"), "adamm"),
        (Given(optimizer=3), "3"),
        (Given(loss="mss"), "mss"),
        (Given(loss=["mse", "mss"]), "mss"),
    ],
)
def test_what_keras_does_not_know_is_refused_with_the_value(given, received):
    with pytest.raises(UsageError, match="cannot be compiled with optimizer=") as error:
        compile_as_given(compiled(), given)
    assert received in str(error.value)


@pytest.mark.parametrize("loss", ["crossentropy", "ce", "mse", keras.losses.Huber(), lambda y, p: p])
def test_losses_that_keras_knows_are_taken(loss):
    model = mlp()
    compile_as_given(model, Given(optimizer="sgd", loss=loss))
    assert model.loss is loss


def test_a_compile_of_the_models_own_is_not_called_with_what_it_does_not_take():
    class Own(keras.Model):
        def compile(self, generator_optimizer):
            super().compile()

    inputs = keras.Input((4,))
    model = Own(inputs, keras.layers.Dense(1)(inputs))
    with pytest.raises(UsageError, match="a model whose compile\\(\\) takes other arguments has to be compiled before"):
        compile_as_given(model, Given(optimizer="adam"))
