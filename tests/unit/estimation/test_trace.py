"""Traced training steps: who made which op, and which variables the step uses."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.subject import Batch
from tensorboard_plugin_memest.estimation.trace import Owner, Owners, Trace, UntraceableError, trace_step

L = keras.layers


def traced(model: keras.Model, x: tf.TensorSpec, y: tf.TensorSpec | None) -> Trace:
    return trace_step(model, Batch(x, y))


@pytest.fixture(scope="module")
def trace() -> Trace:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            L.Dense(8, activation="relu", name="first"),
            L.BatchNormalization(name="norm"),
            L.Dense(1, name="last"),
        ]
    )
    model.compile(keras.optimizers.Adam(name="adam"), "mse", metrics=["mae"])
    return traced(model, tf.TensorSpec((4, 6)), tf.TensorSpec((4, 1)))


def owners_of(trace: Trace, kind: str) -> list[Owner]:
    return [trace.owners.find(op.name) for op in trace.graph.get_operations() if op.type == kind]


def test_forward_and_backward_ops_belong_to_their_layer(trace):
    # Forward twice; backward twice for the weights, and once for what comes before the last layer.
    assert sorted(owner.layer for owner in owners_of(trace, "MatMul")) == ["first", "first", "last", "last", "last"]
    assert {owner.layer for owner in owners_of(trace, "Relu")} == {"first"}
    assert {owner.layer for owner in owners_of(trace, "ReluGrad")} == {"first"}
    assert {owner.layer for owner in owners_of(trace, "Rsqrt")} == {"norm"}
    assert not any(owner.is_update for owner in owners_of(trace, "MatMul"))


def test_ops_of_the_update_belong_to_the_optimizer(trace):
    updates = owners_of(trace, "AssignSubVariableOp")
    assert updates
    assert set(updates) == {Owner("(optimizer)", is_update=True)}
    # Adam takes the root of v once for each of the six weights that are trained.
    assert owners_of(trace, "Sqrt").count(Owner("(optimizer)", is_update=True)) >= 6


def test_loss_and_metrics_are_parts_of_their_own(trace):
    assert {owner.layer for owner in owners_of(trace, "SquaredDifference")} | {
        owner.layer for owner in owners_of(trace, "Square") if not owner.is_update
    } >= {"(loss)"}
    assert Owner("(metrics)") in owners_of(trace, "Abs")
    assert Owner("(metrics)") in owners_of(trace, "AssignAddVariableOp") + owners_of(trace, "AssignVariableOp")


def test_every_captured_variable_is_known(trace):
    names = {variable.name for variable in trace.handles.values()}
    assert {"first/kernel", "norm/moving_mean", "first/kernel (Adam m)", "adam/iteration"} <= names
    assert trace.assumptions == []
    for name in trace.handles:
        assert trace.graph.get_operation_by_name(name).type == "Placeholder"


def test_the_batch_comes_from_an_iterator_with_the_shapes_of_the_data(trace):
    (feed,) = [op for op in trace.graph.get_operations() if op.type == "IteratorGetNext"]
    assert [tuple(tensor.shape) for tensor in feed.outputs] == [(4, 6), (4, 1)]


def recurrent(layer: keras.layers.Layer) -> Trace:
    model = keras.Sequential([keras.Input((5, 3)), layer, L.Flatten(), L.Dense(1)])
    model.compile("sgd", "mse")
    return traced(model, tf.TensorSpec((2, 5, 3)), tf.TensorSpec((2, 1)))


def test_ops_inside_loops_have_owners_too():
    trace = recurrent(L.LSTM(4, name="lstm"))
    found = [name for name in trace.owners.by_called_op if name.endswith("while/lstm_cell_1/MatMul")]
    assert found
    assert {trace.owners.find(name).layer for name in found} == {"lstm/lstm_cell"}
    # The gradient's loop has names of its own, behind two scopes of gradients.
    gradient = f"gradient_tape/x/while/gradients/{found[0]}_grad/MatMul_1"
    assert trace.owners.find(gradient).layer == "lstm/lstm_cell"


def test_an_inlined_function_keeps_its_owners():
    class Step(keras.Model):
        @tf.function
        def train_step(self, data):
            return super().train_step(data)

    inputs = keras.Input((6,))
    model = Step(inputs, L.Dense(1, name="only")(inputs))
    model.compile("adam", "mse")
    trace = traced(model, tf.TensorSpec((4, 6)), tf.TensorSpec((4, 1)))
    (forward,) = [
        name for name, owner in trace.owners.by_called_op.items() if owner == Owner("only") and name.endswith("/MatMul")
    ]
    assert trace.owners.find(f"StatefulPartitionedCall/{forward}") == Owner("only")
    assert trace.owners.find(f"StatefulPartitionedCall/{forward}_tfg_inlined_cond_0") == Owner("only")


@pytest.fixture
def owners() -> Owners:
    made = Owners()
    made.record("model/dense/MatMul", Owner("dense"))
    made.record("model/dense/inner/Relu", Owner("dense/inner"))
    made.record("adam/Mul", Owner("(optimizer)", True))
    made.record("Sum", Owner("(step)"))
    made.record("body/cell/Tanh", Owner("rnn/cell"), called=True)
    made.record("Identity", Owner("a"), called=True)
    made.record("Identity", Owner("b"), called=True)
    return made


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("model/dense/MatMul", "dense"),
        # What Grappler makes of an op is named after it.
        ("ConstantFolding/model/dense/MatMul", "dense"),
        ("model/dense/MatMul-0-LayoutOptimizer", "dense"),
        ("LayoutOptimizer/model/dense/inner/Relu", "dense/inner"),
        # A gradient has the scope of its forward op; the longest that is known decides.
        ("gradient_tape/model/dense/MatMul/MatMul_1", "dense"),
        ("gradient_tape/model/dense/inner/ReluGrad", "dense/inner"),
        ("gradient_tape/model/dense/inner/deeper/Sum", "dense/inner"),
        ("PartitionedCall/gradients/model/dense/MatMul_grad/MatMul", "dense"),
        # Ops of a called function, in it and inlined.
        ("body/cell/Tanh", "rnn/cell"),
        ("call/body/cell/Tanh", "rnn/cell"),
        ("gradient_tape/call/gradients/body/cell/Tanh_grad/TanhGrad", "rnn/cell"),
        ("adam/Mul", "(optimizer)"),
        ("Sum", "(step)"),
        # Two functions with one name in each say nothing; neither do names that nobody has.
        ("Identity", "(step)"),
        ("nowhere/at/all", "(step)"),
    ],
)
def test_owners_are_found_by_name(owners, name, layer):
    assert owners.find(name).layer == layer


def test_an_update_stays_one_under_grapplers_names(owners):
    assert owners.find("ArithmeticOptimizer/adam/Mul").is_update


def test_what_is_not_built_is_built_on_the_way():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = L.Dense(5, name="first")
            self.made = None

        def call(self, x):
            if self.made is None:
                self.made = L.Dense(2, name="late")
            return self.made(self.first(x))

    model = Model()
    model.compile("adam", "mse")
    trace = traced(model, tf.TensorSpec((4, 6)), tf.TensorSpec((4, 2)))
    assert [path for path, _ in trace.layers.layers] == ["first", "late"]
    assert "late/kernel (Adam v)" in {variable.name for variable in trace.handles.values()}
    assert {owner.layer for owner in owners_of(trace, "MatMul")} == {"first", "late"}


def test_variables_that_the_model_does_not_know_are_taken_in():
    queue = tf.Variable(tf.zeros((50, 6)), name="queue")

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(1)

        def call(self, x):
            return self.dense(x + queue[:4])

    model = Model()
    model(np.zeros((4, 6)))
    model.compile("sgd", "mse")
    trace = traced(model, tf.TensorSpec((4, 6)), tf.TensorSpec((4, 1)))
    (other,) = [variable for variable in trace.handles.values() if variable.role == "variable"]
    assert (other.shape, other.bytes, other.layer) == ((50, 6), 1200, "(step)")
    (note,) = trace.assumptions
    assert "none of the model's, its optimizers' or its metrics'" in note
    assert "were counted" in note


def test_lookup_tables_are_named_and_not_counted():
    lookup = L.StringLookup(vocabulary=["a", "b"])
    inputs = keras.Input((3,), dtype="string")
    model = keras.Model(inputs, L.Dense(1)(L.Flatten()(L.Embedding(4, 2)(lookup(inputs)))))
    model.compile("sgd", "mse")
    trace = traced(model, tf.TensorSpec((4, 3), "string"), tf.TensorSpec((4, 1)))
    (note,) = trace.assumptions
    assert "is no variable (a lookup table or the like); its memory was not counted" in note
    assert "string_lookup" in note


def test_a_step_that_cannot_be_traced_says_for_what_and_why():
    model = keras.Sequential([keras.Input((6,)), L.Dense(3)], name="mlp")
    model.compile("sgd", "mse")
    with pytest.raises(
        UntraceableError, match=r"The training step of the model 'mlp' \(Sequential\) cannot be traced"
    ) as error:
        traced(model, tf.TensorSpec((4, 6)), tf.TensorSpec((4, 7)))
    assert "((4, 6) float32, (4, 7) float32)" in str(error.value)
    assert "ValueError: Dimensions must be equal, but are 7 and 3" in str(error.value)
    assert "pass inputs= and targets=" in str(error.value)
    assert isinstance(error.value.__cause__, ValueError)


def test_an_error_of_the_users_own_is_told_with_its_words():
    class Model(keras.Model):
        def train_step(self, data):
            raise KeyError("left over from yesterday")

    inputs = keras.Input((6,))
    model = Model(inputs, L.Dense(1)(inputs))
    model.compile("sgd", "mse")
    with pytest.raises(UntraceableError, match="KeyError: 'left over from yesterday'"):
        traced(model, tf.TensorSpec((4, 6)), tf.TensorSpec((4, 1)))


def test_inputs_may_be_a_whole_batch_with_weights_in_it():
    model = keras.Sequential([keras.Input((6,)), L.Dense(1)])
    model.compile("sgd", "mse")
    batch = (tf.TensorSpec((4, 6)), tf.TensorSpec((4, 1)), tf.TensorSpec((4,)))
    found = traced(model, batch, None)
    assert found.assumptions == [
        "inputs= was taken for the whole batch as the data yields it, ((4, 6) float32, (4, 1) float32, (4,) float32)."
    ]
    weighted = [op for op in found.graph.get_operations() if op.type == "Mul" and "compile_loss" in op.name]
    assert any(str(one.inputs[1].shape) == "(4,)" for one in weighted)


def test_a_step_of_ones_own_is_given_the_batch_that_it_takes():
    class Triplets(keras.Model):
        def __init__(self):
            super().__init__()
            self.net = L.Dense(3)
            self.net.build((None, 6))
            self.built = True

        def call(self, x):
            return self.net(x)

        def train_step(self, data):
            anchor, near, far = data
            with tf.GradientTape() as tape:
                distances = [tf.reduce_sum((self(anchor) - self(other)) ** 2) for other in (near, far)]
                loss = tf.nn.relu(distances[0] - distances[1] + 1.0)
            self.optimizer.apply(tape.gradient(loss, self.net.trainable_variables), self.net.trainable_variables)
            return {"loss": loss}

    class Packed(Triplets):
        def train_step(self, data):
            [batch] = data
            return super().train_step(batch)

    for kind, noted in ((Triplets, 1), (Packed, 0)):
        model = kind()
        model.compile("sgd")
        found = traced(model, (tf.TensorSpec((4, 6)),) * 3, None)
        assert len(owners_of(found, "MatMul")) >= 3
        assert len(found.assumptions) == noted, found.assumptions
