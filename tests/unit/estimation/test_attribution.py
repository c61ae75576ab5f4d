"""What tensors are for, and whose, in steps of real models."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.attribution import BACKWARD, FORWARD, UPDATE
from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.trial import trial_of
from tensorboard_plugin_memest.memory.category import Category
from tests.unit.estimation.traced import Looked, look

L = keras.layers
KERNEL = 40 * 60 * 4


@pytest.fixture(scope="module")
def mlp() -> Looked:
    model = keras.Sequential(
        [
            keras.Input((40,)),
            L.Dense(60, activation="relu", name="wide"),
            L.Dropout(0.5, name="drop"),
            L.Dense(1, name="last"),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
    return look(model, 256)


def test_a_gradient_belongs_to_its_weight(mlp):
    gradients = [tag for tag in mlp.tags() if tag.category is Category.GRADIENTS]
    kernels = [tag for tag in gradients if tag.variable == "wide/kernel"]
    assert {(tag.layer, tag.role, tag.shape) for tag in kernels} == {("wide", "gradient", (40, 60))}
    assert {tag.variable for tag in gradients} >= {"wide/kernel", "last/kernel"}


def test_temporaries_of_the_update_belong_to_their_weight(mlp):
    temporaries = [tag for tag in mlp.tags(least=KERNEL) if tag.role == "update temporary"]
    assert temporaries
    assert {(tag.layer, tag.variable, tag.category) for tag in temporaries} == {
        ("wide", "wide/kernel", Category.TEMPORARIES)
    }
    others = {tag.variable for tag in mlp.tags() if tag.role == "update temporary"}
    assert {"wide/bias", "last/kernel", "last/bias"} <= others


def test_what_the_backward_pass_reads_is_an_activation(mlp):
    activations = {(tag.layer, tag.shape) for tag in mlp.tags() if tag.category is Category.ACTIVATIONS}
    assert ("wide", (256, 60)) in activations
    assert ("drop", (256, 60)) in activations


def test_the_batch_is_an_input(mlp):
    inputs = [tag for tag in mlp.tags(least=1) if tag.category is Category.INPUTS]
    assert {(tag.layer, tag.role, tag.shape) for tag in inputs} == {
        ("(input)", "batch", (256, 40)),
        ("(input)", "batch", (256, 1)),
    }


def test_tensors_of_the_backward_pass_that_are_no_gradients_are_temporaries_of_their_layer(mlp):
    passing = [tag for tag in mlp.tags(least=256 * 60 * 4) if "backward" in tag.role]
    assert passing
    assert {tag.category for tag in passing} == {Category.TEMPORARIES}
    assert {tag.layer for tag in passing} <= {"wide", "drop", "last"}


def test_nothing_large_belongs_to_nobody(mlp):
    layers = {layer for (layer, _), size in mlp.bytes_of().items() if size > KERNEL}
    assert layers <= {"wide", "drop", "last", "(input)"}


def test_the_parts_of_the_step(mlp):
    parts = {node.name: part for node, part in zip(mlp.graph.nodes, mlp.attribution.parts, strict=True)}
    assert {part for name, part in parts.items() if name.startswith("adam")} <= {UPDATE, FORWARD}
    assert parts[next(name for name in parts if name.startswith("adam") and "Sqrt" in name)] == UPDATE
    assert {part for name, part in parts.items() if "gradient_tape" in name} <= {BACKWARD, FORWARD}
    assert all(part != UPDATE for name, part in parts.items() if name.startswith("sequential"))


def test_constants_and_what_a_layer_keeps_as_a_tensor_are_constants():
    class Table(L.Layer):
        def __init__(self):
            super().__init__(name="table")
            self.table = tf.random.stateless_uniform((40, 500), (1, 2))

        def call(self, x):
            return x @ self.table

    model = keras.Sequential([keras.Input((40,)), Table(), L.Dense(1)])
    model.compile("sgd", "mse")
    kept = [tag for tag in look(model, 8).tags() if tag.shape == (40, 500)]
    assert [(tag.layer, tag.category) for tag in kept] == [("table", Category.CONSTANTS)]


def test_a_shared_layers_gradient_is_one_of_its_weight():
    shared = L.Dense(60, name="shared")
    one, other = keras.Input((60,)), keras.Input((60,))
    model = keras.Model([one, other], L.Dense(1, name="last")(L.Add()([shared(one), shared(other)])))
    model.compile("sgd", "mse")
    looked = look(model, 8)
    gradients = [tag for tag in looked.tags() if tag.shape == (60, 60) and tag.category is Category.GRADIENTS]
    assert {(tag.layer, tag.variable) for tag in gradients} == {("shared", "shared/kernel")}
    assert not [tag for tag in looked.tags() if tag.shape == (60, 60) and tag.layer != "shared"]


def test_a_layer_inside_a_layer_has_its_own_tensors():
    inner = keras.Sequential([keras.Input((40,)), L.Dense(60, activation="relu", name="a")], name="inner")
    model = keras.Sequential([keras.Input((40,)), inner, L.Dense(1, name="b")])
    model.compile("adam", "mse")
    sizes = look(model, 8).bytes_of()
    assert sizes["inner/a", Category.GRADIENTS] >= KERNEL
    assert sizes["inner", Category.GRADIENTS] == 0


@pytest.mark.parametrize("layer", [lambda: L.LSTM(32, name="rnn"), lambda: L.GRU(32, name="rnn")])
def test_a_recurrent_layers_loop_belongs_to_its_cell(layer):
    model = keras.Sequential([keras.Input((7, 40)), layer(), L.Dense(1, name="last")])
    model.compile("adam", "mse")
    looked = look(model, 64)
    layers = {tag.layer for tag in looked.tags(least=64 * 32 * 4)}
    assert {one.split("/")[0] for one in layers} <= {"rnn", "last", "(input)"}
    assert any(one.startswith("rnn/") for one in layers)
    stored = [tag for tag in looked.tags() if tag.role.endswith("one an iteration")]
    assert {tag.category for tag in stored} == {Category.ACTIVATIONS}
    gradient = [tag for tag in looked.tags() if tag.category is Category.GRADIENTS and tag.variable]
    assert any(tag.variable.startswith("rnn/") and tag.variable.endswith("recurrent_kernel") for tag in gradient)


def test_under_loss_scaling_the_update_belongs_to_its_weights_all_the_same():
    model = keras.Sequential([keras.Input((40,)), L.Dense(60, name="wide"), L.Dense(1, name="last")])
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()), "mse")
    looked = look(model, 8)
    large = [tag for tag in looked.tags(least=KERNEL) if tag.category is Category.TEMPORARIES]
    assert large
    assert {tag.layer for tag in large} == {"wide"}
    assert {tag.variable for tag in large if tag.role == "update temporary"} == {"wide/kernel"}


def test_a_step_in_a_function_of_the_users_is_told_apart_as_well():
    class Step(keras.Model):
        @tf.function
        def train_step(self, data):
            return super().train_step(data)

    inputs = keras.Input((40,))
    model = Step(inputs, L.Dense(1, name="last")(L.Dense(60, activation="relu", name="wide")(inputs)))
    model.compile("adam", "mse")
    looked = look(model, 8)
    sizes = looked.bytes_of()
    assert sizes["wide", Category.GRADIENTS] == KERNEL + 60 * 4
    updates = {tag.variable for tag in looked.tags(least=KERNEL) if tag.role == "update temporary"}
    assert updates == {"wide/kernel"}
    assert not [tag for tag in looked.tags(least=KERNEL) if tag.layer in ("(step)", "(optimizer)")]


def test_models_with_two_optimizers_update_each_weight_under_its_own():
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = keras.Sequential([keras.Input((40,)), L.Dense(60, name="a")], name="first")
            self.second = keras.Sequential([keras.Input((60,)), L.Dense(40, name="b")], name="second")

        def compile(self):
            super().compile()
            self.one, self.other = keras.optimizers.Adam(), keras.optimizers.SGD(momentum=0.9)

        def train_step(self, data):
            for part, optimizer in ((self.first, self.one), (self.second, self.other)):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(self.second(self.first(data)) - data))
                weights = part.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"loss": loss}

    model = Two()
    model.compile()
    looked = look(model, 8, inputs=tf.TensorSpec((None, 40)))
    roles = {variable.role for variable in looked.training.trace.variables.all if variable.weight == "second/b/kernel"}
    assert roles == {"weight", "SGD momentum"}
    assert looked.training.optimizers == ("Adam", "SGD")
    gradients = {tag.variable for tag in looked.tags(least=KERNEL) if tag.category is Category.GRADIENTS}
    assert gradients == {"first/a/kernel", "second/b/kernel"}


def test_several_steps_at_once_are_kerass_loop_with_a_batch_ahead():
    def made(steps: int) -> keras.Model:
        model = keras.Sequential([keras.Input((400,)), L.Dense(300, activation="relu", name="wide"), L.Dense(1)])
        model.compile("adam", "mse", steps_per_execution=steps)
        return model

    five = look(made(5), 64)
    assert set(trial_of(five.program).iterations.values()) == {5}
    kernel = 400 * 300 * 4
    updates = {tag.variable for tag in five.tags(least=kernel) if tag.role == "update temporary"}
    assert updates == {"wide/kernel"}
    assert {tag.layer for tag in five.tags(least=kernel)} == {"wide"}
    alone, together = (estimate(made(steps), batch_size=64).phases["step"] for steps in (1, 5))
    batch = 64 * 401 * 4
    assert together.categories[Category.INPUTS] >= batch, "the next one, if not the one at work"
    assert abs(together.peak_bytes - alone.peak_bytes) <= 2 * batch + 0.1 * alone.peak_bytes


def test_the_states_of_a_recurrent_layer_are_its_own():
    model = keras.Sequential([keras.Input(batch_shape=(8, 5, 4)), L.LSTM(16, stateful=True, name="rnn"), L.Dense(1)])
    model.compile("sgd", "mse")
    states = [one for one in look(model, 8).training.trace.variables.all if one.role == "state"]
    assert [(one.layer, one.shape) for one in states] == [("rnn", (8, 16))] * 2


def test_sums_of_gradients_and_zeros_are_of_the_layer_that_they_are_made_for():
    """Neither has a name that tells: normalization sums gradients of its input, loops begin with zeros."""
    inputs = keras.Input((6, 16, 16, 2))
    x = L.ConvLSTM2D(8, 3, padding="same", return_sequences=True, name="rnn")(inputs)
    x = L.ConvLSTM2D(8, 3, padding="same", return_sequences=True, name="second")(x)
    x = L.LayerNormalization(name="normal")(x)
    model = keras.Model(inputs, L.Conv3D(1, 1, name="last")(x))
    model.compile("adam", "mse")
    nameless = [tag for tag in look(model, 64).tags() if tag.name.startswith(("AddN", "zeros_like"))]
    assert {(tag.layer, tag.name.partition("_")[0]) for tag in nameless} >= {("normal", "AddN"), ("second", "zeros")}
    assert not [tag for tag in nameless if tag.layer == "(step)"]
