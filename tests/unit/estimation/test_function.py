"""Estimates of training steps outside Keras: what is found, what is left alone, what is said, what is refused."""

from __future__ import annotations

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.device import training_device
from tensorboard_plugin_memest.estimation.function import estimate_function
from tensorboard_plugin_memest.estimation.graph import optimized_graph
from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.small import SHARED
from tensorboard_plugin_memest.estimation.step_function import training_of_step
from tensorboard_plugin_memest.estimation.tf_functions import untouched_functions
from tensorboard_plugin_memest.estimation.trace import UntraceableError
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers
X, Y = tf.TensorSpec((None, 40)), tf.TensorSpec((None, 3))


def mlp(inputs: int = 40, outputs: int = 3, name: str = "mlp") -> keras.Model:
    hidden = L.Dense(60, activation="relu", name="hidden")
    return keras.Sequential([keras.Input((inputs,)), hidden, L.Dense(outputs, name="last")], name=name)


def step_of(model, optimizer):
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    return step


def names(made: Estimate, category: Category) -> set[str]:
    return {item.name for item in made.phases["step"].live_at_peak if item.category is category}


def notes(made: Estimate) -> str:
    return "\n".join(made.assumptions)


# What is found


def owners_of_large(made: Estimate) -> set[str]:
    """Whose the tensors of more than 1 KiB are; handles and shapes, many small ones, are told as one item each."""
    told_together = {tag.name for tag in SHARED}
    alive = made.phases["step"].live_at_peak
    return {item.layer for item in alive if item.bytes > 1024 and item.name not in told_together}


def test_a_loop_needs_what_fit_needs():
    model = mlp()
    model.compile("adam", "mse")
    fitted = estimate(model, batch_size=64)
    made = estimate_function(step_of(mlp(), keras.optimizers.Adam()), X, Y, batch_size=64)
    assert list(made.phases) == ["first_step", "step"]
    # Fit keeps the mean of the loss besides, a sum and a count; the loop holds its batch until the step has run.
    assert fitted.resident_bytes - made.resident_bytes == 2 * 256
    assert abs(made.peak_bytes - fitted.peak_bytes) < 0.1 * fitted.peak_bytes
    assert names(made, Category.WEIGHTS) == names(fitted, Category.WEIGHTS)
    slots = {name for name in names(fitted, Category.OPTIMIZER_SLOTS) if "(" in name}
    assert len(slots) == 8
    assert slots <= names(made, Category.OPTIMIZER_SLOTS)
    paths = {layer.path for layer in made.layers if not layer.path.startswith("input_layer")}
    assert paths >= {"hidden", "last", "(optimizer)", "(input)"}
    assert owners_of_large(made) <= {"input_layer", "hidden", "last", "(input)"}
    for phase in made.phases.values():
        assert sum(item.bytes for item in phase.live_at_peak) == phase.peak_bytes


def test_several_models_and_optimizers_are_told_apart():
    class Trainer:
        def __init__(self):
            self.maker, self.judge = mlp(40, 40, "maker"), mlp(40, 1, "judge")
            self.optimizers = {"maker": keras.optimizers.Adam(), "judge": keras.optimizers.SGD(momentum=0.9)}

        @tf.function
        def step(self, x):
            for model, optimizer in ((self.maker, "maker"), (self.judge, "judge")):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(self.judge(self.maker(x)))
                weights = model.trainable_variables
                self.optimizers[optimizer].apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return loss

    trainer = Trainer()
    made = estimate_function(trainer.step, tf.TensorSpec((32, 40)))
    assert (made.subject.model_name, made.subject.batch_size) == ("step", 32)
    assert made.subject.optimizer == "Adam, SGD"
    assert made.subject.parameters == trainer.maker.count_params() + trainer.judge.count_params()
    assert {"maker/hidden", "maker/last", "judge/hidden", "judge/last"} <= {layer.path for layer in made.layers}
    slots = names(made, Category.OPTIMIZER_SLOTS)
    assert {"maker/hidden/kernel (Adam m)", "judge/hidden/kernel (SGD momentum)"} <= slots
    assert owners_of_large(made) <= {"maker/hidden", "maker/last", "judge/hidden", "judge/last", "(input)"}


class Affine(tf.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.w, self.b = tf.Variable(tf.zeros((inputs, outputs))), tf.Variable(tf.zeros((outputs,)))

    def __call__(self, x):
        return x @ self.w + self.b


class Net(tf.Module):
    def __init__(self):
        super().__init__(name="net")
        self.first = Affine(40, 500)
        self.rest = [Affine(500, 500), Affine(500, 1)]
        self.seen = tf.Variable(0, trainable=False)

    def __call__(self, x):
        x = tf.nn.relu(self.first(x))
        return self.rest[1](tf.nn.relu(self.rest[0](x)))


def test_plain_modules_and_variables_have_names_and_layers():
    net, scale = Net(), tf.Variable(tf.ones((40,)), name="scale")

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(net(x * scale))
        weights = [*net.trainable_variables, scale]
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * gradient)
        net.seen.assign_add(1)
        return loss

    made = estimate_function(step, tf.TensorSpec((16, 40)))
    assert [(layer.path, layer.class_name, layer.parameters) for layer in made.layers][:4] == [
        ("first", "Affine", 40 * 500 + 500),
        ("rest/0", "Affine", 500 * 500 + 500),
        ("rest/1", "Affine", 501),
        ("net", "Net", 1),
    ]
    assert {"first/w", "rest/0/w", "rest/1/b", "scale"} <= names(made, Category.WEIGHTS)
    assert made.subject.trainable_parameters == 40 * 500 + 500 + 500 * 500 + 500 + 501 + 40
    large = [item for item in made.phases["step"].live_at_peak if item.bytes >= 500 * 500 * 4]
    assert {item.layer for item in large} == {"rest/0"}
    assert {item.category for item in large} >= {Category.WEIGHTS, Category.GRADIENTS}
    forward = [item for item in made.phases["step"].live_at_peak if item.shape == (16, 500)]
    assert {item.layer for item in forward} <= {"first", "rest/0", "rest/1", "net"}


def test_what_the_first_call_creates_is_counted_and_not_created():
    class Lazy:
        weight = None

        @tf.function
        def step(self, x):
            if self.weight is None:
                self.weight = tf.Variable(tf.random.normal((40, 50)), name="late")
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(x @ self.weight)
            self.weight.assign_sub(tape.gradient(loss, self.weight))
            return loss

    lazy = Lazy()
    made = estimate_function(lazy.step, tf.TensorSpec((8, 40)))
    assert "weight" not in vars(lazy)
    assert made.resident_bytes == 40 * 50 * 4 + 192, "rounded up to 256"
    assert "late" in names(made, Category.WEIGHTS)
    assert np.isfinite(lazy.step(tf.ones((8, 40))))
    assert lazy.weight.shape == (40, 50)


def test_a_model_that_was_never_called_is_built_on_the_way_and_left_unbuilt():
    model = keras.Sequential([L.Dense(60, name="hidden"), L.BatchNormalization(name="norm"), L.Dense(3, name="last")])
    optimizer = keras.optimizers.Adam(use_ema=True)
    made = estimate_function(tf.function(step_of(model, optimizer)), X, Y, batch_size=8)
    assert not model.built
    assert not optimizer.built
    assert {"hidden/kernel", "norm/gamma", "last/bias"} <= names(made, Category.WEIGHTS)
    assert "hidden/kernel (Adam average)" in names(made, Category.OPTIMIZER_SLOTS)


def test_functions_that_the_step_calls_are_part_of_it():
    model, optimizer = mlp(), keras.optimizers.SGD(momentum=0.9)
    forward = tf.function(lambda x: model(x, training=True))

    @tf.function
    def update(gradients):
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(forward(x) - y))
        update(tape.gradient(loss, model.trainable_variables))
        return loss

    nested = estimate_function(step, X, Y, batch_size=64)
    flat = estimate_function(step_of(mlp(), keras.optimizers.SGD(momentum=0.9)), X, Y, batch_size=64)
    assert nested.resident_bytes == flat.resident_bytes
    assert abs(nested.peak_bytes - flat.peak_bytes) < 0.1 * flat.peak_bytes
    assert owners_of_large(nested) <= {"hidden", "last", "(input)"}


def test_sums_of_gradients_belong_to_their_weights():
    hidden = [L.Dense(4000, activation="relu", name=name) for name in ("first", "second")]
    model, optimizer = keras.Sequential([keras.Input((40,)), *hidden, L.Dense(3)]), keras.optimizers.SGD()

    def step(x, y):
        total = [tf.zeros_like(weight) for weight in model.trainable_variables]
        for part in range(4):
            rows = slice(16 * part, 16 * part + 16)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x[rows]) - y[rows]))
            gradients = tape.gradient(loss, model.trainable_variables)
            total = [one + other for one, other in zip(total, gradients, strict=True)]
        optimizer.apply_gradients(zip(total, model.trainable_variables, strict=True))

    with untouched_functions():
        training = training_of_step(step, (tf.TensorSpec((64, 40)), tf.TensorSpec((64, 3))), {}, None)
    trace = training.trace
    graph = optimized_graph(training.step, trace.handles, "CPU", 64)
    ops = {node.op for node in graph.nodes}
    # As in TensorFlow's own graph of this step: sums of more than the runtime thinks a CPU holds are taken apart.
    assert "TemporaryVariable" in ops
    assert {output.dtype for node in graph.nodes for output in node.outputs if "ref" in output.dtype} == set()
    made = estimate_function(step, tf.TensorSpec((64, 40)), tf.TensorSpec((64, 3)))
    large = [item for item in made.phases["step"].live_at_peak if item.shape == (4000, 4000)]
    assert {item.layer for item in large} == {"second"}
    assert Category.UNATTRIBUTED not in {item.category for item in large}


# Arguments


def test_arguments_come_in_any_structure():
    model = mlp()

    @tf.function
    def step(batch, scale, *, training, mask=None):
        assert training is True
        assert scale == 2
        return tf.reduce_sum(model(batch["x"], training=training) * scale) + tf.reduce_sum(batch["more"][0] * mask)

    batch = {"x": X, "more": (np.zeros((5, 7), "float32"),)}
    made = estimate_function(step, batch, 2, training=True, mask=tf.ones((7,)), batch_size=5)
    assert made.subject.batch_size == 5
    inputs = [item for item in made.phases["step"].live_at_peak if item.category is Category.INPUTS]
    assert {item.shape for item in inputs} == {(5, 40), (5, 7), (7,)}
    assert {item.layer for item in inputs} == {"(input)"}


def test_models_and_variables_can_be_arguments_too():
    model, bias = mlp(), tf.Variable(tf.zeros((3,)), name="bias")

    def step(model, bias, x):
        return model(x) + bias

    made = estimate_function(step, model, bias, tf.TensorSpec((4, 40)))
    assert {"hidden/kernel", "bias"} <= names(made, Category.WEIGHTS)


def test_iterators_give_the_batch():
    model, optimizer = mlp(), keras.optimizers.Adam()
    train = step_of(model, optimizer)

    @tf.function
    def step(iterator):
        return train(*next(iterator))

    data = tf.data.Dataset.from_tensors((tf.zeros((8, 40)), tf.zeros((8, 3))))
    of_iterator = estimate_function(step, iter(data))
    assert of_iterator.subject.batch_size == 8
    assert of_iterator.peak_bytes == estimate_function(step, tf.data.IteratorSpec(data.element_spec)).peak_bytes
    iterator = iter(data)
    closed = estimate_function(lambda: step(iterator), batch_size=8)
    assert abs(closed.peak_bytes - of_iterator.peak_bytes) <= 4096
    assert "resource" not in notes(closed)


def test_a_function_that_has_a_signature_needs_no_specs():
    model = mlp()
    step = tf.function(lambda x: tf.reduce_sum(model(x)), input_signature=[X])
    assert estimate_function(step, batch_size=16).subject.batch_size == 16
    with pytest.raises(UsageError, match="or batch_size= for the first dimension"):
        estimate_function(step)


def test_loops_and_conditions_of_python_become_those_of_tensorflow():
    weight = tf.Variable(tf.zeros((50, 50)))

    def step(x):
        for _ in tf.range(3):
            if tf.reduce_sum(x) > 0:
                x = x @ weight
        return x

    made = estimate_function(step, tf.TensorSpec((20, 50)))
    assert made.peak_bytes >= 50 * 50 * 4 + 2 * 20 * 50 * 4
    assert "not known" not in notes(made)


# What is left alone


def test_everything_is_left_as_it_was():
    keras.utils.set_random_seed(3)
    model, optimizer, noise = mlp(), keras.optimizers.Adam(), L.GaussianNoise(1.0)
    mean = keras.metrics.Mean()
    losses = []
    calls = 0
    train = step_of(model, optimizer)

    @tf.function
    def step(x, y):
        nonlocal calls
        calls += 1
        loss = train(noise(x, training=True), y)
        losses.append(loss)
        mean.update_state(loss)
        return loss

    before = [weight.numpy() for weight in [*model.weights, *mean.variables, *noise.variables]]
    made = estimate_function(step, X, Y, batch_size=8)
    assert made.resident_bytes > 0
    assert (losses, calls, optimizer.built, step.experimental_get_tracing_count()) == ([], 0, False, 0)
    after = [weight.numpy() for weight in [*model.weights, *mean.variables, *noise.variables]]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert "update_state" not in vars(mean)
    step(tf.ones((8, 40)), tf.ones((8, 3)))
    assert calls >= 1
    assert int(optimizer.iterations) == 1
    traced = step.experimental_get_tracing_count()
    again = estimate_function(step, X, Y, batch_size=8)
    step(tf.ones((8, 40)), tf.ones((8, 3)))
    assert step.experimental_get_tracing_count() == traced
    assert int(optimizer.iterations) == 2
    assert again.resident_bytes == made.resident_bytes


def test_estimates_repeat_and_do_not_care_where_they_are_asked_for():
    step = step_of(mlp(), keras.optimizers.Adam())
    expected = estimate_function(step, X, Y, batch_size=8)
    seen = []

    @tf.function
    def inside():
        seen.append(estimate_function(step, X, Y, batch_size=8))

    inside()
    assert expected == seen[0]


# How it runs


def test_xla_is_asked_for_a_step_that_it_compiles():
    step = step_of(mlp(600, 500), keras.optimizers.Adam())
    specs = [tf.TensorSpec((64, 600)), tf.TensorSpec((64, 500))]
    compiled = estimate_function(tf.function(step, jit_compile=True), *specs)
    graph = estimate_function(step, *specs)
    assert (compiled.subject.mode, graph.subject.mode) == ("xla", "graph")
    assert "APPROXIMATION" not in notes(compiled)
    assert estimate_function(step, *specs, jit_compile=True).phases == compiled.phases
    assert estimate_function(tf.function(step, jit_compile=True), *specs, jit_compile=False).phases == graph.phases
    for phase in compiled.phases.values():
        assert sum(item.bytes for item in phase.live_at_peak) == phase.peak_bytes
        # The loop holds its batch all the time.
        batch = [item.requested_bytes for item in phase.live_at_peak if item.category is Category.INPUTS]
        assert sorted(batch) == [64 * 500 * 4, 64 * 600 * 4]
    assert names(compiled, Category.OPTIMIZER_SLOTS) == names(graph, Category.OPTIMIZER_SLOTS)


# What is said


def test_what_is_assumed_is_said():
    step = step_of(mlp(), keras.optimizers.Adam())
    plain = estimate_function(step, X, Y, batch_size=8)
    assert "step is no tf.function; it was estimated as if it were wrapped in one" in notes(plain)
    assert "How the models and variables are built was not estimated" in notes(plain)
    assert plain.subject.model_class == "function"
    wrapped = estimate_function(
        tf.function(step, jit_compile=True), X, Y, batch_size=8, device="GPU", compile_timeout=0
    )
    assert "no tf.function" not in notes(wrapped)
    assert "compiled with XLA" in notes(wrapped)
    assert (wrapped.subject.device, wrapped.subject.model_class) == ("GPU", "tf.function")
    assert wrapped.phases["step"].peak_bytes > 0
    assert "XLA" not in notes(estimate_function(tf.function(step), X, Y, batch_size=8))
    no_batch = estimate_function(lambda: tf.zeros(()))
    assert no_batch.subject.batch_size == 1
    assert "the batch size was taken for 1" in notes(no_batch)
    two = estimate_function(lambda a, b: tf.reduce_sum(a) + tf.reduce_sum(b), tf.zeros((6, 2)), tf.zeros((4,)))
    assert "taken from the first argument of the step function that has dimensions: 6" in notes(two)


def test_its_names_and_text_can_be_read():
    text = str(estimate_function(step_of(mlp(), keras.optimizers.Adam()), X, Y, batch_size=8))
    assert "step" in text
    assert "hidden" in text


# What is refused


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"must be a tf\.function or a Python function, not 3 of type int"):
        estimate_function(3)


def test_arguments_that_do_not_fit_are_refused():
    step = step_of(mlp(), keras.optimizers.Adam())
    with pytest.raises(UsageError, match=r"cannot be called with the 1 arguments .*missing a required argument: 'y'"):
        estimate_function(step, X)
    with pytest.raises(UsageError, match="got an unexpected keyword argument 'z'"):
        estimate_function(functools.partial(step), X, Y, z=3)
    for value in (0, -1, 2.5, True, "8"):
        with pytest.raises(UsageError, match="batch_size must be a positive integer"):
            estimate_function(step, X, Y, batch_size=value)
    with pytest.raises(UsageError, match=r"batch_size=7, but the first dimensions .* are 8"):
        estimate_function(step, tf.zeros((8, 40)), tf.zeros((8, 3)), batch_size=7)
    with pytest.raises(UsageError, match="device must be"):
        estimate_function(step, X, Y, batch_size=8, device="TPU")
    with pytest.raises(UsageError, match="jit_compile='auto': pass True for XLA"):
        estimate_function(step, X, Y, batch_size=8, jit_compile="auto")
    with pytest.raises(UsageError, match="compile_timeout=-1"):
        estimate_function(step, X, Y, batch_size=8, compile_timeout=-1)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (tf.TensorSpec((8, None)), "size that is not known before the run"),
        (tf.TensorSpec(None), "size that is not known before the run"),
        (tf.RaggedTensorSpec((8, None)), "sparse or ragged"),
        (tf.SparseTensorSpec((8, 40)), "sparse or ragged"),
    ],
)
def test_sizes_that_only_the_run_knows_are_refused(spec, text):
    with pytest.raises(UsageError, match=text):
        estimate_function(lambda x: x, spec, batch_size=8)


def test_functions_that_need_values_say_so():
    with pytest.raises(
        UntraceableError, match=r"(?s)The step function <lambda> cannot be traced .*has to stay outside"
    ):
        estimate_function(lambda x: x.numpy(), tf.zeros((3,)))


def test_the_device_is_this_processs():
    assert estimate_function(lambda x: x + 1, tf.zeros((3,))).subject.device == training_device().kind


# Other batch sizes


def test_other_batch_sizes_are_those_of_the_arguments():
    step = step_of(mlp(), keras.optimizers.Adam())
    fixed = estimate_function(step, tf.TensorSpec((512, 40)), tf.TensorSpec((512, 3)))
    open_ = estimate_function(step, X, Y, batch_size=2048)
    assert fixed.at_batch_size(2048) == open_
    assert open_.at_batch_size(512) == fixed
    limit = open_.peak_bytes
    largest = fixed.max_batch_size(limit)
    assert largest > 512
    assert fixed.at_batch_size(largest).fits(limit)
    with pytest.raises(UsageError, match="positive integer"):
        fixed.at_batch_size(0)


# What lies where


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_models_that_exist_lie_in_the_pool_as_building_them_left_it(run_eagerly):
    sizes = (900, 700, 500, 300)
    model = keras.Sequential([keras.Input((800,)), *(L.Dense(size) for size in sizes)])
    built = estimate(model, batch_size=None, predict_batch_size=8, jit_compile=False).phases["build"].timeline
    made = estimate_function(lambda x: model(x), tf.TensorSpec((8, 800)), run_eagerly=run_eagerly)
    before = made.phases["first_step"].timeline.live_bytes[0]
    # What initializers left was handed out whole.
    assert before == built.live_bytes[-1] > 1.2 * made.resident_bytes
