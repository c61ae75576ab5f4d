"""What is handed to the process that rehearses."""

from __future__ import annotations

import functools
import pickle

import keras
import pytest

from tensorboard_plugin_memest.measure.handover import Handover, as_build, packed, portable, rebuilt, settings
from tests.integration.processes import answer_of


class Halved(keras.layers.Dense):
    """Of this module, never registered for saving."""


def own_loss(y_true, y_pred):
    return keras.ops.mean((y_true - y_pred) ** 4)


def make(units=3, **compiled):
    model = keras.Sequential([keras.Input((4,)), Halved(units), keras.layers.Dense(1)])
    if compiled:
        model.compile(**compiled)
    return model


def handed(build, **arguments):
    return packed(Handover(as_build(build), 2, 1, portable(arguments), settings()))


def test_functions_arrive_in_a_process_that_does_not_know_their_module(tmp_path):
    units = 7
    builds = [lambda: make(units), make, functools.partial(make, 5), make(4)]
    for number, build in enumerate(builds):
        (tmp_path / str(number)).write_bytes(handed(build))
    found = answer_of(
        """
        import json, os, pickle, sys
        sys.path.insert(0, os.getcwd())
        sys.modules["tests"] = None
        models = [pickle.load(open(os.path.join(sys.argv[1], str(n)), "rb")).build() for n in range(4)]
        print(json.dumps([[type(m.layers[0]).__name__, m.layers[0].units] for m in models]))
        """,
        str(tmp_path),
    )
    assert found == [["Halved", 7], ["Halved", 3], ["Halved", 5], ["Halved", 4]]


def test_a_model_is_made_and_compiled_as_it_was_and_has_no_slots_yet():
    optimizer = keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9), momentum=0.5)
    model = make(optimizer=optimizer, loss=own_loss, metrics=["mae"], jit_compile=True)
    made = pickle.loads(handed(model)).build()
    assert made is not model
    assert [tuple(weight.shape) for weight in made.weights] == [(4, 3), (3,), (3, 1), (1,)]
    assert (type(made.optimizer).__name__, made.optimizer.momentum) == ("SGD", 0.5)
    assert made.loss.__name__ == "own_loss"
    assert (made.jit_compile, made.run_eagerly) == (True, False)
    assert not made.optimizer.built


def test_a_model_that_is_not_compiled_stays_so():
    assert not pickle.loads(handed(make())).build().compiled


def test_optimizers_and_losses_among_the_arguments_arrive():
    arguments = {"optimizer": keras.optimizers.Adam(0.25), "loss": keras.losses.Huber(0.5), "jit_compile": False}
    found = rebuilt(pickle.loads(handed(make, **arguments)).arguments)
    assert float(found["optimizer"].learning_rate) == 0.25
    assert type(found["loss"]) is keras.losses.Huber
    assert found["jit_compile"] is False


def test_keras_settings_are_those_of_the_process_that_handed_over():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    data = handed(make)
    keras.config.set_dtype_policy(before)
    try:
        pickle.loads(data).apply_settings()
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy(before)


def test_a_model_that_cannot_be_made_again_is_refused():
    class Needy(keras.Model):
        def __init__(self, lock):
            super().__init__()

        def get_config(self):
            return {}

        def call(self, inputs):
            return inputs

    with pytest.raises(ValueError, match=r"'needy' \(Needy\) cannot be made again from its configuration"):
        handed(Needy(lock=1))


def test_a_model_with_a_compile_of_its_own_is_refused():
    class Two(keras.Sequential):
        def compile(self, first, second):
            super().compile(first, "mse")

    model = Two([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "adam")
    with pytest.raises(ValueError, match="does not say how it was compiled"):
        handed(model)
