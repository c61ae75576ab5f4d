"""Trainings of models of every making: how variables come to be, and that nothing is changed."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.replicas import MadeUnderStrategyError
from tensorboard_plugin_memest.estimation.trace import UntraceableError
from tensorboard_plugin_memest.estimation.training import Training, training_of_function, training_of_model
from tensorboard_plugin_memest.memory.errors import UsageError

L = keras.layers


def mlp(optimizer: object = "adam") -> keras.Model:
    model = keras.Sequential([keras.Input((6,)), L.Dense(8, name="a"), L.Dense(1, name="b")], name="mlp")
    model.compile(optimizer, "mse")
    return model


def built(training: Training) -> list[str]:
    assert training.built is not None
    return [birth.variable.name.replace("adam_1", "adam") for birth in training.built]


def slots(training: Training) -> list[str]:
    return [birth.variable.name for birth in training.slots]


WEIGHTS = ["a/kernel", "a/bias", "b/kernel", "b/bias"]
SLOTS = [f"{weight} (Adam {letter})" for weight in WEIGHTS for letter in "mv"]


def test_a_function_builds_weights_then_what_compiling_makes_and_the_first_step_makes_slots():
    training = training_of_function(mlp, Given(batch_size=4))
    names = built(training)
    assert names[:4] == WEIGHTS
    assert [name.rpartition("/")[2] for name in names[4:6]] == ["iteration", "learning_rate"]
    assert set(WEIGHTS) & set(slots(training)) == set()
    assert [name for name in slots(training) if "Adam" in name] == SLOTS


def test_a_model_that_exists_is_built_the_same_way():
    of_function, of_model = (
        training_of_function(mlp, Given(batch_size=4)),
        training_of_model(mlp(), Given(batch_size=4)),
    )
    assert built(of_model)[:4] == WEIGHTS
    assert slots(of_model) == slots(of_function)
    for one, other in zip(of_function.built[:4], of_model.built[:4], strict=True):
        assert one.run == other.run
    assert of_model.assumptions == of_function.assumptions == []


def test_a_trained_models_slots_are_there_already():
    model = mlp()
    model.fit(np.zeros((4, 6)), np.zeros((4, 1)), verbose=0)
    training = training_of_model(model, Given(batch_size=4))
    assert training.slots == []
    assert not set(SLOTS) & set(built(training)), "building made none of them"
    assert set(SLOTS) <= {variable.name for variable in training.trace.variables.all}


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__(name="subclassed")
        self.dense = L.Dense(3, name="dense")
        self.drop = L.Dropout(0.5, name="drop")

    def call(self, x, training=False):
        return self.drop(self.dense(x), training=training)


def compiled(model: keras.Model) -> keras.Model:
    model.compile("adam", "mse")
    return model


def test_what_is_not_built_is_built_in_the_first_step():
    for training in (
        training_of_function(lambda: compiled(Subclassed()), Given(4, inputs=tf.TensorSpec((None, 6)))),
        training_of_model(compiled(Subclassed()), Given(4, inputs=tf.TensorSpec((None, 6)))),
    ):
        assert "dense/kernel" in slots(training)
        assert not {"dense/kernel", "dense/bias"} & set(built(training))


def test_a_subclassed_model_that_was_called_is_made_again_by_its_class():
    model = compiled(Subclassed())
    model(np.zeros((1, 6)))
    training = training_of_model(model, Given(batch_size=4))
    assert [name for name in built(training) if name.startswith("dense")] == ["dense/kernel", "dense/bias"]
    (kernel,) = [birth for birth in training.built if birth.variable.name == "dense/kernel"]
    assert [made.op for made in kernel.run.made if made.bytes == 6 * 3 * 4] != [], "its initializer is known"
    assert training.assumptions == []


def test_a_model_that_cannot_be_made_again_says_so():
    class Wants(Subclassed):
        def __init__(self, what):
            super().__init__()

    model = compiled(Wants(1))
    model(np.zeros((1, 6)))
    training = training_of_model(model, Given(batch_size=4))
    assert training.built is None
    assert any("The build phase was not estimated" in note for note in training.assumptions)


def test_a_copy_with_other_variables_is_no_copy():
    class Changing(keras.Model):
        width = 3

        def __init__(self):
            super().__init__()
            self.dense = L.Dense(self.width)

        def call(self, x):
            return self.dense(x)

    model = compiled(Changing())
    model(np.zeros((1, 6)))
    Changing.width = 4
    assert training_of_model(model, Given(batch_size=4)).built is None


def test_a_function_that_returns_a_model_that_exists_is_about_that():
    model = mlp()
    training = training_of_function(lambda: model, Given(batch_size=4))
    assert built(training)[:4] == WEIGHTS
    assert not model.optimizer.built
    assert float(tf.reduce_sum(tf.abs(model.layers[0].kernel))) > 0


def test_a_new_head_on_a_model_that_exists():
    base = keras.Sequential([keras.Input((6,)), L.Dense(8, name="base")])

    def build():
        inputs = keras.Input((6,))
        return compiled(keras.Model(inputs, L.Dense(1, name="head")(base(inputs))))

    training = training_of_function(build, Given(batch_size=4))
    by_name = {birth.variable.name: birth.run for birth in training.built}
    base_kernel = next(run for name, run in by_name.items() if name.endswith("base/kernel"))
    assert base_kernel.made == [], "it was there before"
    assert by_name["head/kernel"].made != []


def test_eager_values_may_be_needed_on_the_way():
    def build():
        normalize = L.Normalization()
        normalize.adapt(np.random.rand(20, 6).astype("float32"))
        assert tf.zeros((2,)).numpy().shape == (2,)
        model = keras.Sequential([keras.Input((6,)), normalize, L.Dense(1, name="b")])
        return compiled(model)

    training = training_of_function(build, Given(batch_size=4))
    assert "b/kernel" in built(training)
    assert training.parameters == 6 + 6 + 1 + 7


def doubled(width: int) -> keras.Model:
    """A model whose weights are read and written while it is built."""
    model = keras.Sequential([keras.Input((6,)), L.Dense(width, name="a"), L.Dense(1, name="b")])
    model.set_weights([weight * 2.0 for weight in model.get_weights()])
    return compiled(model)


class _Private(L.Layer):
    def build(self, shape):
        self.table = self.add_weight(shape=(shape[-1],), name="table")

    def call(self, x):
        return x * self.table


@pytest.mark.parametrize("optimizer", ["adam", "adafactor"])
def test_layers_may_be_named_after_private_classes(optimizer):
    def build():
        inputs = keras.Input((6,))
        model = keras.Model(inputs, L.Dense(1)(_Private()(inputs)))
        model.compile(optimizer, "mse")
        return model

    training = training_of_function(build, Given(batch_size=4))
    # Nothing of it had to be made eagerly.
    assert len(training.creations.without_value) == len(training.creations.all)
    assert any("table" in name for name in slots(training))


def test_slots_that_begin_with_a_tensor_of_the_step_do_without_its_value():
    def build():
        model = mlp("adafactor")
        # Needs an eager value, so everything is built eagerly.
        assert float(model.layers[0].bias.numpy()[0]) == 0
        return model

    assert any("Adafactor" in name for name in slots(training_of_function(build, Given(batch_size=4))))


def test_values_of_small_variables_can_be_had_while_building():
    training = training_of_function(lambda: doubled(8), Given(batch_size=4))
    assert built(training)[:4] == WEIGHTS
    assert [made.op for made in training.built[0].run.made if made.bytes == 6 * 8 * 4] != []


def test_values_of_large_variables_cannot_and_that_is_said():
    with pytest.raises(UsageError, match=r"needs values of the model's variables.* Build the model first and pass it"):
        training_of_function(lambda: doubled(2**16), Given(batch_size=4))


def test_weights_may_be_loaded(tmp_path):
    path = str(tmp_path / "made.weights.h5")
    mlp().save_weights(path)

    def build():
        model = mlp()
        model.load_weights(path)
        return model

    assert built(training_of_function(build, Given(batch_size=4)))[:4] == WEIGHTS


def test_an_error_of_the_function_is_the_users_to_see():
    def build():
        raise KeyError("my own")

    with pytest.raises(KeyError, match="my own"):
        training_of_function(build, Given(batch_size=4))


def test_a_function_that_returns_no_model_is_refused_once():
    calls = []

    def build():
        calls.append(1)
        return 5

    with pytest.raises(TypeError, match="What the function returns must be"):
        training_of_function(build, Given(batch_size=4))
    assert calls == [1]


def test_variables_beside_the_model_count_while_somebody_holds_them():
    kept = []

    def build():
        kept.append(keras.Variable("zeros", shape=(100, 10), name="beside"))
        keras.Variable("zeros", shape=(50, 10), name="dropped")
        return mlp()

    training = training_of_function(build, Given(batch_size=4))
    beside = [birth.variable for birth in training.built if birth.variable.role == "variable"]
    assert [variable.shape for variable in beside] == [(100, 10), (50, 10)]
    # What is dropped is there until then.
    gone = {variable: birth.variable.name for birth in training.built for variable in birth.gone}
    assert gone == {beside[1]: training.built[2].variable.name}
    assert beside[1] not in training.trace.variables.all
    (note,) = training.assumptions
    assert "belong to none of its layers (beside" in note


def test_an_optimizer_object_stays_unbuilt_and_unchanged():
    optimizer = keras.optimizers.Adam()
    before = [variable.path for variable in optimizer.variables]
    model = keras.Sequential([keras.Input((6,)), L.Dense(1)])
    training_of_model(model, Given(4, optimizer=optimizer, loss="mse"))
    training_of_function(lambda: mlp(optimizer), Given(4))
    assert not optimizer.built
    assert [variable.path for variable in optimizer.variables] == before
    assert not model.compiled
    # Loss scaling reaches into the optimizer it is given.
    scaled = keras.optimizers.SGD(loss_scale_factor=8.0)
    policy = keras.Sequential([keras.Input((6,)), L.Dense(1)])
    policy.dtype_policy = keras.DTypePolicy("mixed_float16")
    training_of_model(policy, Given(4, optimizer=scaled, loss="mse"))
    assert scaled.loss_scale_factor == 8.0


def test_steps_per_execution_are_said():
    model = mlp()
    model.compile("adam", "mse", steps_per_execution=4)
    (note,) = training_of_model(model, Given(4)).assumptions
    assert note == "steps_per_execution=4: a step of this estimate is Keras' loop over 4 batches."


def test_how_a_model_is_compiled_is_told():
    eager, fast = mlp(), mlp()
    eager.compile("adam", "mse", run_eagerly=True)
    fast.compile("adam", "mse", jit_compile=True)
    assert [training_of_model(model, Given(4)).mode.name for model in (eager, fast, mlp())] == ["eager", "xla", "graph"]


def test_only_optimizers_that_the_step_uses_are_told():
    class Own(keras.Model):
        def compile(self):
            super().compile()  # which makes an RMSprop
            self.mine = keras.optimizers.SGD()

        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self(data))
            self.mine.apply_gradients(
                zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables, strict=True)
            )
            return {"loss": loss}

    inputs = keras.Input((6,))
    model = Own(inputs, L.Dense(1)(inputs))
    model.compile()
    assert training_of_model(model, Given(4)).optimizers == ("SGD",)


def test_a_step_of_the_models_own_needs_no_call():
    class Uncallable(keras.Model):
        def __init__(self):
            super().__init__()
            self.part = keras.Sequential([keras.Input((6,)), L.Dense(1)])

        def train_step(self, data):
            return {"sum": tf.reduce_sum(self.part(data))}

    model = Uncallable()
    model.compile()
    training = training_of_model(model, Given(4, inputs=tf.TensorSpec((None, 6))))
    assert training.parameters == 7


def test_targets_that_cannot_be_inferred_are_asked_for():
    class Uncallable(keras.Model):
        def train_step(self, data):
            x, y = data
            return {"sum": tf.reduce_sum(x) + tf.reduce_sum(y)}

    model = Uncallable()
    model.compile("sgd", "mse")
    x, y = tf.TensorSpec((None, 6)), tf.TensorSpec((None, 2))
    with pytest.raises(UntraceableError, match=r"pass targets= \(targets=\(\) for none\)"):
        training_of_model(model, Given(4, inputs=x))
    training_of_model(model, Given(4, inputs=x, targets=y))
    with pytest.raises(UntraceableError, match="cannot be traced for batches of"):
        training_of_model(model, Given(4, inputs=x, targets=()))


def test_a_models_step_without_targets_gets_the_batch_as_fit_gives_it():
    seen = []

    class Step(keras.Model):
        def train_step(self, data):
            seen.append(data)
            return {}

    inputs = [keras.Input((6,)), keras.Input((2,))]
    model = Step(inputs, L.Concatenate()(inputs))
    model.compile()
    training_of_model(model, Given(4))
    assert [tuple(tensor.shape) for tensor in keras.tree.flatten(seen[0])] == [(4, 6), (4, 2)]
    assert isinstance(seen[-1], tuple)
    assert isinstance(seen[-1][0], tuple)


def test_a_function_that_makes_a_model_under_a_strategy_says_so_and_what_it_made():
    def build():
        with tf.distribute.OneDeviceStrategy("CPU:0").scope():
            return mlp()

    with pytest.raises(MadeUnderStrategyError, match="made under a strategy") as error:
        training_of_function(build, Given(4))
    assert error.value.model.name == "mlp"


@pytest.mark.parametrize("uses_its_own", [False, True])
def test_an_optimizer_that_the_step_does_not_use_gets_no_slots(uses_its_own):
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(3)
            self.dense.build((None, 5))
            self.built = True
            self.used = keras.optimizers.Adam()

        def train_step(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self.dense(x) ** 2)
            optimizer = self.optimizer if uses_its_own else self.used
            weights = self.dense.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"steps": self.optimizer.iterations}

    def build():
        model = Own()
        model.compile(jit_compile=False)  # which gives it an RMSprop
        return model

    training = training_of_function(build, Given(4, inputs=tf.TensorSpec((None, 5)), targets=()))
    expected = {"RMSprop velocity"} if uses_its_own else {"Adam m", "Adam v"}
    kept = [one for one in training.trace.variables.all if one.weight != one.name and one.weight]
    assert {variable.role for variable in kept} == expected
    assert {birth.variable.role for birth in training.slots if birth.variable.weight} == expected
