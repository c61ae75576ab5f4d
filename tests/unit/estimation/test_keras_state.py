"""What is put back: random states, names, objects and their containers."""

from __future__ import annotations

import random
from collections import OrderedDict

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.backend.common import global_state

from tensorboard_plugin_memest.estimation.keras_state import untouched_globals, untouched_objects


@pytest.fixture(autouse=True)
def _fresh_session():
    keras.utils.clear_session()
    yield
    keras.utils.clear_session()


def test_pythons_and_numpys_random_numbers_go_on_as_if_nothing_had_been():
    random.seed(3)
    np.random.seed(4)
    expected = (random.random(), np.random.rand())
    random.seed(3)
    np.random.seed(4)
    with untouched_globals():
        random.random()
        np.random.rand(10)
        random.seed(1)
    assert (random.random(), np.random.rand()) == expected


def test_tensorflows_seeds_of_ops_go_on():
    def drawn() -> list[float]:
        tf.random.set_seed(7)
        with untouched_globals():
            for _ in range(draws):
                tf.random.uniform(())
        return [float(tf.random.uniform(())) for _ in range(2)]

    draws = 0
    expected = drawn()
    draws = 3
    assert drawn() == expected


def test_names_of_layers_do_not_shift():
    assert keras.layers.Dense(1).name == "dense"
    with untouched_globals():
        assert keras.layers.Dense(1).name == "dense_1"
        keras.Sequential([keras.layers.Dense(1)])
    assert keras.layers.Dense(1).name == "dense_1"
    assert keras.Sequential().name == "sequential"


def test_the_global_seed_generator_is_the_same_with_the_same_state():
    first = keras.random.normal((2,))
    generator = global_state.get_global_attribute("global_seed_generator")
    before = np.array(generator.state)
    with untouched_globals():
        keras.random.normal((2,))
        keras.random.normal((2,))
        assert not np.array_equal(np.array(generator.state), before)
    assert global_state.get_global_attribute("global_seed_generator") is generator
    assert np.array_equal(np.array(generator.state), before)
    assert not np.array_equal(first, keras.random.normal((2,)))


def test_a_global_seed_generator_that_was_made_inside_is_forgotten():
    with untouched_globals():
        keras.random.normal((2,))
    assert global_state.get_global_attribute("global_seed_generator") is None


def test_a_session_that_is_cleared_inside_goes_on_outside():
    keras.layers.Dense(1)
    keras.config.set_dtype_policy("mixed_bfloat16")
    tracker = global_state.GLOBAL_STATE_TRACKER
    try:
        with untouched_globals():
            keras.utils.clear_session()
            assert keras.layers.Dense(1).name == "dense"
        assert global_state.GLOBAL_STATE_TRACKER is tracker
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
        assert keras.layers.Dense(1).name == "dense_1"
    finally:
        keras.config.set_dtype_policy("float32")


def test_the_callers_name_scopes_are_not_entered_but_left_open():
    with keras.name_scope("outer"):
        with untouched_globals():
            assert keras.Variable(1.0, name="inside").path == "inside"
        assert keras.Variable(1.0, name="outside").path == "outer/outside"


def test_states_come_back_after_an_error_too():
    random.seed(3)
    expected = random.random()
    random.seed(3)

    def fails():
        with untouched_globals():
            random.random()
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fails()
    assert random.random() == expected


class Holder:
    def __init__(self, **things):
        vars(self).update(things)


def test_attributes_are_set_back_added_and_removed():
    holder = Holder(a=1, b=[1, 2], c="x")
    with untouched_objects([holder]):
        holder.a = 2
        holder.new = 3
        del holder.c
        holder.b = []
    assert vars(holder) == {"a": 1, "b": [1, 2], "c": "x"}


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: [1, 2, 3], lambda held: held.append(4)),
        (lambda: [1, 2, 3], lambda held: held.pop(0)),
        (lambda: [1, 2, 3], lambda held: held.reverse()),
        (lambda: {"a": 1, "b": 2}, lambda held: held.update(a=3, c=4)),
        (lambda: {"a": 1, "b": 2}, lambda held: held.pop("a")),
        (lambda: OrderedDict(a=1, b=2), lambda held: held.update(c=4)),
        (lambda: {1, 2}, lambda held: held.add(3)),
        (lambda: {1, 2}, lambda held: held.clear()),
    ],
)
def test_containers_keep_their_contents_and_stay_the_same_objects(make, change):
    holder = Holder(held=make(), deep=Holder(deeper=[make()]))
    held, deep = holder.held, holder.deep.deeper[0]
    with untouched_objects([holder]):
        change(held)
        change(deep)
        assert held != make()
    assert holder.held is held
    assert holder.deep.deeper[0] is deep
    assert held == make()
    assert deep == make()
    assert list(held) == list(make())


def test_what_did_not_change_is_not_written():
    class Watched(dict):
        def __setitem__(self, key, value):
            raise AssertionError("written")

    with untouched_objects([Watched(a=1)]):
        pass


def test_a_model_that_is_built_inside_is_unbuilt_again_and_can_still_be_built():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = keras.layers.Dense(3)
            self.made = None

        def call(self, x):
            if self.made is None:
                self.made = keras.layers.Dense(2)
            return self.made(self.first(x))

    model = Model()
    model.compile("adam", "mse", metrics=["mae"])
    with untouched_objects([model]):
        model.fit(np.zeros((4, 5)), np.zeros((4, 2)), verbose=0)
        assert model.built
        assert len(model.optimizer.variables) > 2
    assert not model.built
    assert model.made is None
    assert not model.first.built
    assert model.weights == []
    assert not model.optimizer.built
    assert [variable.name for variable in model.optimizer.variables] == ["iteration", "learning_rate"]
    # Nothing of the first building is in the way of another, on other shapes.
    model.fit(np.zeros((4, 7)), np.zeros((4, 2)), verbose=0)
    assert model.first.kernel.shape == (7, 3)
    assert len(model.weights) == 4
    assert len(model.optimizer.variables) == 2 + 2 * 4


def test_a_model_put_back_can_be_saved(tmp_path):
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(2)])
    model.compile("adam", "mse")
    with untouched_objects([model]):
        model.fit(np.zeros((4, 5)), np.zeros((4, 2)), verbose=0)
    # TensorFlow refuses to save lists and dicts that were changed behind its back.
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(tmp_path / "checkpoint"))
    model.fit(np.zeros((4, 5)), np.zeros((4, 2)), verbose=0)
    model.save(tmp_path / "model.keras")
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(tmp_path / "checkpoint"))
