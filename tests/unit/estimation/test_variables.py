"""What each variable of a training is, and whose."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.layers import LayerPaths
from tensorboard_plugin_memest.estimation.variables import Variable, Variables, size_in_bytes
from tensorboard_plugin_memest.memory.category import Category

L = keras.layers


def variables(model: keras.Model) -> Variables:
    return Variables([model], LayerPaths(model))


def by_name(model: keras.Model) -> dict[str, Variable]:
    found = variables(model).all
    names = {variable.name: variable for variable in found}
    assert len(names) == len(found), "two variables have one name"
    return names


def mlp(*layers: keras.layers.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((4,)), *(layers or (L.Dense(8, name="a"), L.Dense(1, name="b")))])


def trained(model: keras.Model, optimizer: object) -> keras.Model:
    """`model` with an optimizer that is built."""
    model.compile(optimizer, "mse")
    model.optimizer.build(model.trainable_variables)
    return model


@pytest.mark.parametrize(
    ("shape", "dtype", "size"),
    [
        ((), "float32", 4),
        ((3, 5), "float16", 30),
        ((2**20, 2**13), "float32", 2**35),
        ((0, 7), "int64", 0),
        ((4,), "string", 0),
        ((4,), "resource", 0),
        ((2,), "bool", 2),
        ((2,), "complex64", 16),
        ((2,), "bfloat16", 4),
    ],
)
def test_sizes_are_exact(shape, dtype, size):
    assert size_in_bytes(shape, dtype) == size
    assert isinstance(size_in_bytes(shape, dtype), int)


def test_weights_belong_to_their_layers():
    model = mlp(L.Dense(8, name="a"), L.BatchNormalization(name="norm"), L.Dense(2, name="b", trainable=False))
    found = by_name(model)
    assert set(found) == {"a/kernel", "a/bias", "norm/gamma", "norm/beta", "norm/moving_mean", "norm/moving_variance",
                          "b/kernel", "b/bias"}  # fmt: skip
    kernel = found["a/kernel"]
    assert kernel == Variable(
        "a/kernel", "a", Category.WEIGHTS, "weight", "a/kernel", (4, 8), "float32", 4 * 8 * 4, True
    )
    assert not found["b/kernel"].trainable
    assert not found["norm/moving_mean"].trainable
    assert all(one.category is Category.WEIGHTS for one in found.values())


def test_the_state_of_random_numbers_is_no_weight():
    found = by_name(mlp(L.Dropout(0.5, name="drop"), L.Dense(1, name="b")))
    (state,) = [one for one in found.values() if one.role == "random state"]
    assert (state.layer, state.category, state.weight) == ("drop", Category.UNATTRIBUTED, None)


# For every optimizer of Keras: what it keeps for each weight, in words.
SLOTS = {
    "SGD": [],
    "Adam": ["m", "v"],
    "AdamW": ["m", "v"],
    "Adamax": ["m", "norm"],
    "Nadam": ["m", "v"],
    "Adadelta": ["accumulated grad", "accumulated delta var"],
    "Adagrad": ["accumulator"],
    "Adafactor": ["r", "c", "velocity"],
    "Ftrl": ["accumulator", "linear"],
    "Lion": ["momentum"],
    "RMSprop": ["velocity"],
    "Lamb": ["m", "v"],
}


@pytest.mark.parametrize("name", SLOTS)
@pytest.mark.parametrize("extra", [[], ["average", "gradient accumulator"]])
def test_every_optimizers_slots_belong_to_their_weights(name, extra):
    options = {"use_ema": True, "gradient_accumulation_steps": 2} if extra else {}
    # Names that begin alike, so that a slot could be taken for the other's.
    model = mlp(L.Dense(8, name="d"), L.Dense(8, name="d_kernel"), L.Dense(1, name="d_kernel_momentum"))
    trained(model, getattr(keras.optimizers, name)(**options))
    slots: dict[str, list[str]] = {}
    for variable in by_name(model).values():
        if variable.category is Category.OPTIMIZER_SLOTS and variable.weight:
            assert variable.name == f"{variable.weight} ({variable.role})"
            assert variable.layer == variable.weight.split("/")[0]
            slots.setdefault(variable.weight, []).append(variable.role.removeprefix(f"{name} "))
    expected = sorted([*SLOTS[name], *extra])
    assert {weight: sorted(found) for weight, found in slots.items()} == (
        {f"{layer.name}/{part}": expected for layer in model.layers for part in ("kernel", "bias")} if expected else {}
    )


# Every optimizer that this Keras has and that takes no other one.
OPTIMIZERS = [
    name
    for name, kind in vars(keras.optimizers).items()
    if isinstance(kind, type)
    and issubclass(kind, keras.optimizers.Optimizer)
    and name not in ("Optimizer", "LossScaleOptimizer", "MultiOptimizer")
]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_whatever_an_optimizer_keeps_beside_numbers_is_for_a_weight(name):
    found = by_name(trained(mlp(), getattr(keras.optimizers, name)()))
    slots = [one for one in found.values() if one.category is Category.OPTIMIZER_SLOTS]
    assert slots
    assert [one.name for one in slots if one.weight is None and one.shape != ()] == []


def test_slots_have_the_shapes_of_their_weights():
    model = trained(mlp(), "adam")
    found = by_name(model)
    assert found["a/kernel (Adam m)"] == Variable(
        "a/kernel (Adam m)", "a", Category.OPTIMIZER_SLOTS, "Adam m", "a/kernel", (4, 8), "float32", 128, False
    )
    assert found["b/bias (Adam v)"].shape == (1,)


def test_amsgrad_momentum_and_centering_have_words_too():
    assert "a/kernel (Adam v hat)" in by_name(trained(mlp(), keras.optimizers.Adam(amsgrad=True)))
    assert "a/kernel (SGD momentum)" in by_name(trained(mlp(), keras.optimizers.SGD(momentum=0.9)))
    roles = {
        one.role for one in by_name(trained(mlp(), keras.optimizers.RMSprop(momentum=0.9, centered=True))).values()
    }
    assert {"RMSprop velocity", "RMSprop momentum", "RMSprop average gradient"} <= roles


def test_what_an_optimizer_keeps_for_no_weight_is_its_own():
    found = by_name(trained(mlp(), "nadam"))
    own = {one.role: one.bytes for one in found.values() if one.layer == "(optimizer)"}
    assert own == {"Nadam iteration": 8, "Nadam learning rate": 4, "Nadam u product": 4}


def test_slots_of_layers_with_one_name_are_told_apart_by_their_position():
    class Twins(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = L.Dense(3, name="twin"), L.Dense(3, name="twin")

        def call(self, x):
            return self.second(self.first(x))

    model = Twins()
    model(np.zeros((1, 5)))
    found = by_name(trained(model, "adam"))
    assert found["twin/kernel (Adam m)"].shape == (5, 3)
    assert found["twin#2/kernel (Adam m)"].shape == (3, 3)
    assert found["twin#2/kernel (Adam v)"].weight == "twin#2/kernel"


def test_loss_scaling_names_the_optimizer_inside_it():
    model = trained(mlp(), keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(momentum=0.9)))
    found = by_name(model)
    assert found["a/kernel (SGD momentum)"].weight == "a/kernel"
    own = {one.role for one in found.values() if one.layer == "(optimizer)"}
    assert {"LossScaleOptimizer step counter", "LossScaleOptimizer dynamic scale", "SGD iteration"} <= own


@pytest.mark.skipif(not hasattr(keras.optimizers, "MultiOptimizer"), reason="this Keras has none")
def test_several_optimizers_in_one_have_their_own_words():
    biases, kernels = keras.optimizers.SGD(momentum=0.9), keras.optimizers.Adam()
    model = trained(mlp(), keras.optimizers.MultiOptimizer(lambda one: biases if one.name == "bias" else kernels))
    found = by_name(model)
    assert {"a/kernel (Adam m)", "a/kernel (Adam v)", "a/bias (SGD momentum)"} <= set(found)
    assert not {"a/bias (Adam m)", "a/kernel (SGD momentum)"} & set(found)


class Custom(keras.optimizers.Optimizer):
    """An optimizer of a user's, with slots in a dict and no configuration."""

    def __init__(self):
        super().__init__(learning_rate=0.1)

    def build(self, variables):
        super().build(variables)
        self.speeds = {
            variable.path: self.add_variable_from_reference(variable, name="speed") for variable in variables
        }
        self.total = self.add_variable((), name="total")

    def update_step(self, gradient, variable, learning_rate):
        self.assign_sub(variable, gradient * learning_rate)

    def get_config(self):
        raise NotImplementedError


def test_an_optimizer_of_a_users_is_understood_by_its_names():
    found = by_name(trained(mlp(), Custom()))
    assert found["a/kernel (Custom speed)"].shape == (4, 8)
    assert found["b/bias (Custom speed)"].layer == "b"
    assert [one.role for one in found.values() if one.layer == "(optimizer)"] == [
        "Custom iteration",
        "Custom learning rate",
        "Custom total",
    ]


def test_metrics_keep_state_wherever_they_are():
    class Measured(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(1, name="dense")
            self.own = {"deep": [keras.metrics.Mean(name="deep")]}

        def call(self, x):
            return self.dense(x)

    model = Measured()
    model(np.zeros((1, 3)))
    model.compile("sgd", "mse", metrics=[keras.metrics.AUC(name="auc")])
    model.fit(np.zeros((4, 3)), np.zeros((4, 1)), verbose=0)
    metrics = [one for one in by_name(model).values() if one.layer == "(metrics)"]
    assert {(one.category, one.role, one.weight) for one in metrics} == {(Category.UNATTRIBUTED, "metric state", None)}
    names = " ".join(one.name for one in metrics)
    assert "deep/total" in names
    assert "auc" in names
    assert "loss/total" in names


def test_a_variable_is_found_by_its_handle_and_only_by_that():
    model = mlp()
    found = variables(model)
    kernel = found.of_handle(model.layers[0].kernel.handle)
    assert kernel is not None
    assert kernel.name == "a/kernel"
    assert found.of_handle(tf.Variable(1.0).handle) is None


def test_other_variables_are_taken_in_under_names_of_their_own():
    found = variables(mlp())
    one, other = tf.Variable(tf.zeros((2, 3))), tf.Variable(tf.zeros((2, 3)))
    first = found.add_other(one.handle, "Variable", (2, 3), "float32")
    second = found.add_other(other.handle, "Variable", (2, 3), "float32")
    assert first == Variable(
        "Variable", "(step)", Category.UNATTRIBUTED, "variable", None, (2, 3), "float32", 24, False
    )
    assert second.name == "Variable#2"
    assert found.of_handle(other.handle) is second
    assert found.all[-2:] == [first, second]
