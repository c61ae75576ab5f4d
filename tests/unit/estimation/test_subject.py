"""What can be estimated, the specs of its batch, and what callers are told when something is wrong."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.subject import (
    Batch,
    NoModelError,
    batch_size_of,
    checked_model,
    given_target_specs,
    input_specs,
    require_built,
    require_one_device,
    require_subject,
    require_tensorflow,
    target_specs,
)
from tensorboard_plugin_memest.memory.errors import UsageError

L = keras.layers
Spec = tf.TensorSpec


def mlp() -> keras.Model:
    return keras.Sequential([keras.Input((20,)), L.Dense(3)], name="mlp")


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__(name="mine")
        self.dense = L.Dense(3)

    def call(self, x):
        return self.dense(x)


def words(error: pytest.ExceptionInfo) -> str:
    return str(error.value)


# What is a model, or makes one


@pytest.mark.parametrize("make", [lambda: 3, lambda: None, lambda: "model.keras", lambda: L.Dense(3), tf.Module])
def test_what_is_no_model_is_refused_with_what_to_pass(make):
    thing = make()
    with pytest.raises(
        TypeError, match=r"must be a keras.Model or a function without arguments that returns one"
    ) as error:
        require_subject(thing, "The first argument")
    assert words(error).startswith("The first argument must be")
    assert repr(thing) in words(error)
    assert type(thing).__name__ in words(error)


def test_models_and_functions_without_arguments_are_taken():
    def build(width=3):
        return mlp()

    for thing in (mlp(), mlp, build, lambda: mlp(), partial(lambda n: mlp(), 3), Subclassed):
        require_subject(thing, "The first argument")


def test_a_function_that_wants_arguments_is_refused_with_a_way_out():
    with pytest.raises(
        NoModelError, match=r"cannot be called without arguments \(missing a required argument: 'n'\)"
    ) as error:
        require_subject(lambda n: mlp(), "The first argument")
    assert "lambda: make_model(...)" in words(error)


def test_a_model_comes_back_and_something_else_does_not():
    model = mlp()
    assert checked_model(model, "It") is model
    with pytest.raises(NoModelError, match="What the function returns must be"):
        checked_model(5, "What the function returns")


def test_a_model_that_is_not_built_is_refused_with_ways_to_build_it():
    with pytest.raises(UsageError, match=r"The model 'mine' \(Subclassed\) is not built") as error:
        require_built(Subclassed())
    for way in ("keras.Input", "model.build((None, 28, 28, 1))", "inputs=tf.TensorSpec", "a function that returns"):
        assert way in words(error)
    require_built(mlp())


def test_a_model_for_several_devices_is_refused_with_what_to_estimate_instead():
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        model = mlp()
    with pytest.raises(UsageError, match="was made under OneDeviceStrategy") as error:
        require_one_device(model)
    assert "batch_size= of one replica" in words(error)
    require_one_device(mlp())


def test_another_backend_of_keras_is_refused(monkeypatch):
    require_tensorflow()
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(UsageError, match=r"Keras runs on 'jax'.*KERAS_BACKEND=tensorflow"):
        require_tensorflow()


def test_models_of_keras_2_are_refused():
    # The package of Keras 2 is not installed here; its models are callable tf.Modules with a class named Model.
    class Model(tf.Module):
        def __call__(self, x=None):
            return x

    with pytest.raises(TypeError, match=r"must be a keras.Model"):
        require_subject(Model(), "It")


# The size of the batch


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "3", [4]])
def test_a_batch_size_that_is_none_is_refused(size):
    with pytest.raises(UsageError, match="batch_size must be a positive integer, not ") as error:
        batch_size_of(mlp(), size, None)
    assert repr(size) in words(error)


@pytest.mark.parametrize("size", [1, 7, 10**9, np.int64(7)])
def test_a_batch_size_is_taken_as_given(size):
    taken, assumed = batch_size_of(mlp(), size, None)
    assert (taken, assumed) == (int(size), [])
    assert type(taken) is int


def test_without_one_it_is_the_default_of_fit_and_that_is_said():
    size, (assumed,) = batch_size_of(mlp(), None, None)
    assert size == 32
    assert "32, the default of model.fit" in assumed


def fixed() -> keras.Model:
    return keras.Sequential([keras.Input(batch_shape=(8, 20)), L.Dense(3)], name="fixed")


def test_a_models_own_fixed_batch_is_taken_and_that_is_said():
    size, (assumed,) = batch_size_of(fixed(), None, None)
    assert size == 8
    assert "the model 'fixed' fixes, 8" in assumed
    assert batch_size_of(fixed(), 8, None) == (8, [])


def test_a_batch_size_against_the_models_own_is_refused():
    with pytest.raises(UsageError, match="batch_size=2, but the model 'fixed' fixes the batch at 8"):
        batch_size_of(fixed(), 2, None)


def test_given_inputs_fix_a_batch_too():
    assert batch_size_of(mlp(), None, Spec((5, 20)))[0] == 5
    assert batch_size_of(mlp(), 5, Spec((5, 20))) == (5, [])
    assert batch_size_of(fixed(), 3, Spec((None, 20))) == (3, [])
    with pytest.raises(UsageError, match="batch_size=2, but inputs= fixes the batch at 5"):
        batch_size_of(mlp(), 2, Spec((5, 20)))


def test_an_input_without_a_batch_beside_one_with_it_does_not_fix_it():
    assert batch_size_of(mlp(), 7, [Spec((None, 20)), Spec((3, 3))]) == (7, [])


# Inputs


def test_a_sequential_model_takes_one_tensor():
    assert input_specs(mlp(), 7, None).shape == (7, 20)
    assert input_specs(mlp(), 7, None).dtype == "float32"


def functional(inputs) -> keras.Model:
    flat = keras.tree.flatten(inputs)
    merged = L.Concatenate()([L.Flatten()(L.Embedding(9, 2)(one)) if one.dtype == "int32" else one for one in flat])
    return keras.Model(inputs, L.Dense(1)(merged))


def test_functional_models_take_the_structure_of_their_inputs():
    a, b = keras.Input((4,), name="a"), keras.Input((3,), dtype="int32", name="b")
    named = input_specs(functional({"a": a, "b": b}), 2, None)
    assert {name: (tuple(spec.shape), spec.dtype.name) for name, spec in named.items()} == {
        "a": ((2, 4), "float32"),
        "b": ((2, 3), "int32"),
    }
    first, second = input_specs(functional([a, b]), 2, None)
    assert (tuple(first.shape), tuple(second.shape)) == ((2, 4), (2, 3))


def test_a_model_that_was_built_from_a_shape_says_its_inputs():
    model = Subclassed()
    model.build((None, 11))
    assert tuple(input_specs(model, 6, None).shape) == (6, 11)


def test_the_batch_that_a_model_happened_to_be_called_on_says_nothing():
    model = Subclassed()
    model(np.zeros((1, 11)))
    assert tuple(input_specs(model, 6, None).shape) == (6, 11)


def test_a_model_built_from_several_shapes_says_them_all():
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(2)

        def call(self, inputs):
            return self.dense(inputs["a"]) + inputs["b"][1]

    model = Two()
    model({"a": np.zeros((1, 5)), "b": [np.zeros((1, 3)), np.zeros((1, 2))]})
    specs = input_specs(model, 4, None)
    assert tuple(specs["a"].shape) == (4, 5)
    assert [tuple(spec.shape) for spec in specs["b"]] == [(4, 3), (4, 2)]


def test_a_model_that_does_not_say_its_inputs_is_refused_with_how_to():
    with pytest.raises(
        UsageError, match=r"The model 'mine' \(Subclassed\) does not say what its inputs are. Pass inputs="
    ):
        input_specs(Subclassed(), 4, None)


def test_given_inputs_win_and_get_the_batch_size():
    specs = input_specs(mlp(), 4, {"a": Spec((None, 3), "float16"), "b": (Spec((2, 5)),)})
    assert (tuple(specs["a"].shape), specs["a"].dtype.name) == ((4, 3), "float16")
    assert tuple(specs["b"][0].shape) == (2, 5)


@pytest.mark.parametrize("make", [np.zeros, tf.zeros, keras.KerasTensor])
def test_inputs_may_be_anything_with_a_shape_and_a_dtype(make):
    spec = input_specs(mlp(), 2, make((2, 20), "float32"))
    assert (tuple(spec.shape), spec.dtype.name) == ((2, 20), "float32")


@pytest.mark.parametrize("given", [(None, 28, 28, 1), 3, "float32", [], {"a": (None, 3)}])
def test_inputs_that_are_no_specs_are_refused_with_how_to(given):
    with pytest.raises(UsageError, match=r"inputs= takes tf.TensorSpecs in the structure of the data") as error:
        input_specs(mlp(), 2, given)
    assert repr(given) in words(error)


def test_a_size_that_is_not_known_is_refused_with_how_to():
    model = keras.Sequential([keras.Input((None, 3), name="text"), L.Conv1D(2, 1)])
    with pytest.raises(UsageError, match=r"The tensor 'text' of the inputs has the shape \(None, None, 3\)") as error:
        input_specs(model, 4, None)
    assert "Pass inputs=tf.TensorSpec(...) with the largest size you train with" in words(error)
    with pytest.raises(UsageError, match="with a size that is not known"):
        input_specs(mlp(), 4, Spec(None))


@pytest.mark.parametrize(
    "given",
    [tf.SparseTensorSpec((None, 20)), tf.RaggedTensorSpec((None, None)), keras.KerasTensor((None, 20), sparse=True)],
)
def test_sparse_and_ragged_inputs_are_refused_with_how_to(given):
    with pytest.raises(UsageError, match=r"is sparse or ragged .* Estimate with a dense one of the largest size"):
        input_specs(mlp(), 4, given)


def test_a_batch_is_packed_as_datasets_yield_it():
    x, y = Spec((2, 3)), Spec((2,))

    def ways(batch, model=None):
        return batch.ways(model or keras.Model())

    assert ways(Batch(x, y)) == [(x, y)]
    assert ways(Batch(x, None)) == [x]
    assert ways(Batch([x, x], None)) == [((x, x),), (x, x)]
    assert ways(Batch({"a": [x, y]}, [y])) == [({"a": (x, y)}, (y,))]
    # A model with one input is given a whole batch.
    one = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    assert ways(Batch((x, y, y), None), one) == [(x, y, y), ((x, y, y),)]


# Targets

SCORES = Spec((8, 10), "float32")

# For every loss of Keras: whether its targets have the outputs' shape, or are class numbers.
SAME, NUMBERS = (8, 10), (8,)
LOSSES = {
    "BinaryCrossentropy": SAME,
    "BinaryFocalCrossentropy": SAME,
    "CTC": NUMBERS,
    "CategoricalCrossentropy": SAME,
    "CategoricalFocalCrossentropy": SAME,
    "CategoricalGeneralizedCrossEntropy": NUMBERS,
    "CategoricalHinge": SAME,
    "Circle": NUMBERS,
    "CosineSimilarity": SAME,
    "Dice": SAME,
    "Hinge": SAME,
    "Huber": SAME,
    "KLDivergence": SAME,
    "LogCosh": SAME,
    "MeanAbsoluteError": SAME,
    "MeanAbsolutePercentageError": SAME,
    "MeanSquaredError": SAME,
    "MeanSquaredLogarithmicError": SAME,
    "Poisson": SAME,
    "SparseCategoricalCrossentropy": NUMBERS,
    "SquaredHinge": SAME,
    "Tversky": SAME,
}


def test_every_loss_of_keras_is_known_here():
    here = {
        name
        for name, kind in vars(keras.losses).items()
        if isinstance(kind, type) and issubclass(kind, keras.losses.Loss) and name != "Loss"
    }
    assert here <= set(LOSSES), "a new loss: what do its targets look like?"


@pytest.mark.parametrize("name", [name for name in LOSSES if hasattr(keras.losses, name)])
def test_targets_follow_from_every_loss_of_keras(name):
    spec, assumed = target_specs(SCORES, getattr(keras.losses, name)())
    assert tuple(spec.shape) == LOSSES[name]
    assert spec.dtype == ("int64" if LOSSES[name] == NUMBERS else "float32")
    assert assumed == []


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("mse", SAME),
        ("sparse_categorical_crossentropy", NUMBERS),
        ("SparseCategoricalCrossentropy", NUMBERS),
        (keras.losses.sparse_categorical_crossentropy, NUMBERS),
        (keras.losses.binary_crossentropy, SAME),
    ],
)
def test_losses_may_be_names_and_functions(loss, expected):
    spec, assumed = target_specs(SCORES, loss)
    assert tuple(spec.shape) == expected
    assert assumed == []


def test_a_loss_derived_from_one_of_keras_is_like_it():
    class Mine(keras.losses.SparseCategoricalCrossentropy):
        pass

    spec, assumed = target_specs(SCORES, Mine())
    assert tuple(spec.shape) == NUMBERS
    assert ["Mine" in note for note in assumed] == [True]


def test_classes_may_be_on_another_axis():
    outputs = Spec((8, 10, 5, 5))
    spec, _ = target_specs(outputs, keras.losses.SparseCategoricalCrossentropy(axis=1))
    assert tuple(spec.shape) == (8, 5, 5)


@pytest.mark.parametrize("loss", [lambda y, p: p, "crossentropy", "ce"])
def test_a_loss_whose_targets_are_not_certain_is_said(loss):
    spec, (assumed,) = target_specs(SCORES, loss)
    assert tuple(spec.shape) == SAME
    assert "Pass targets= if they differ" in assumed
    assert (loss if isinstance(loss, str) else "<lambda>") in assumed


def test_targets_are_in_the_default_precision_whatever_the_model_computes_in():
    assert target_specs(Spec((8, 10), "float16"), "mse")[0].dtype == "float32"
    assert target_specs(Spec((8, 10), "bfloat16"), "mse")[0].dtype == "float32"
    assert target_specs(Spec((8, 10), "int32"), "mse")[0].dtype == "int32"


def test_without_a_loss_there_are_no_targets():
    assert target_specs(SCORES, None) == (None, [])


NAMED = OrderedDict(p=Spec((8, 3)), q=Spec((8, 1)))


@pytest.mark.parametrize(
    ("outputs", "loss"),
    [
        (dict(NAMED), {"p": "sparse_categorical_crossentropy", "q": "mse"}),
        (dict(NAMED), ["sparse_categorical_crossentropy", "mse"]),
    ],
)
def test_outputs_by_name_have_targets_by_name(outputs, loss):
    specs, assumed = target_specs(outputs, loss, ["p", "q"])
    assert {name: tuple(spec.shape) for name, spec in specs.items()} == {"p": (8,), "q": (8, 1)}
    assert assumed == []


@pytest.mark.parametrize(
    "loss", [["sparse_categorical_crossentropy", "mse"], {"q": "mse", "p": "sparse_categorical_crossentropy"}]
)
def test_outputs_in_a_list_have_targets_in_its_order(loss):
    specs, assumed = target_specs([Spec((8, 3)), Spec((8, 1))], loss, ["p", "q"])
    assert [tuple(spec.shape) for spec in specs] == [(8,), (8, 1)]
    assert assumed == []


def test_one_loss_for_all_outputs():
    specs, _ = target_specs([Spec((8, 3)), Spec((8, 1))], "mse")
    assert [tuple(spec.shape) for spec in specs] == [(8, 3), (8, 1)]


@pytest.mark.parametrize("outputs", [dict(NAMED), list(NAMED.values())])
def test_an_output_without_a_loss_has_a_target_of_its_shape_and_that_is_said(outputs):
    specs, (assumed,) = target_specs(outputs, {"p": "mse"}, ["p", "q"])
    assert [tuple(spec.shape) for spec in keras.tree.flatten(specs)] == [(8, 3), (8, 1)]
    assert "Outputs without a loss were assumed to have targets" in assumed


@pytest.mark.parametrize("loss", [["mse", "mse", "mse"], {"other": "mse"}])
def test_losses_that_do_not_match_the_outputs_are_said(loss):
    specs, (assumed,) = target_specs([Spec((8, 3)), Spec((8, 1))], loss, ["p", "q"])
    assert [tuple(spec.shape) for spec in specs] == [(8, 3), (8, 1)]
    assert "were assumed to have the outputs' shapes and dtypes" in assumed


def test_given_targets_get_the_batch_size():
    assert tuple(given_target_specs(Spec((None, 7)), 4).shape) == (4, 7)
    assert given_target_specs((), 4) is None
    with pytest.raises(UsageError, match=r"targets= takes tf.TensorSpecs"):
        given_target_specs(3, 4)
    with pytest.raises(UsageError, match=r"A tensor of the targets has the shape .* Pass targets="):
        given_target_specs(Spec((None, None)), 4)
