"""Training loops outside Keras that run eagerly: what tapes, names and variables hold, and from when on."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.function import estimate_function
from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers
ROWS, WIDTH = 512, 256
OUTPUT = ROWS * WIDTH * 4
X = tf.TensorSpec((ROWS, WIDTH))


def eager(step, *specs, **named) -> Estimate:
    made = estimate_function(step, *(specs or (X,)), run_eagerly=True, **named)
    assert made.subject.mode == "eager"
    assert list(made.phases) == ["first_step", "step"]
    for phase in made.phases.values():
        assert sum(item.bytes for item in phase.live_at_peak) == phase.peak_bytes == phase.timeline.peak_bytes
    return made


def requested(made: Estimate) -> float:
    """The peak of a step in outputs, what is asked for."""
    return made.phases["step"].requested_peak_bytes / OUTPUT


def dense(*names: str) -> keras.Model:
    return keras.Sequential([keras.Input((WIDTH,)), *(L.Dense(WIDTH, activation="relu", name=name) for name in names)])


def notes(made: Estimate) -> str:
    return "\n".join(made.assumptions)


def test_a_name_holds_its_tensor_until_it_gets_another_or_the_step_returns():
    def held(x):
        a = tf.sin(x)
        b = tf.cos(a)
        return tf.reduce_sum(tf.tan(b))

    def given_up(x):
        a = tf.sin(x)
        a = tf.cos(a)
        return tf.reduce_sum(tf.tan(a))

    # The batch; then all three, or two at a time.
    assert requested(eager(held)) == pytest.approx(4, abs=0.01)
    assert requested(eager(given_up)) == pytest.approx(3, abs=0.01)
    as_graph = estimate_function(given_up, X)
    assert as_graph.subject.mode == "graph"
    assert "Pass run_eagerly=True if the loop calls it as it is" in notes(as_graph)


def test_a_persistent_tape_holds_what_another_gives_up_while_it_is_asked():
    weight = tf.Variable(tf.ones((WIDTH,)))

    def step(x, *, persistent):
        with tf.GradientTape(persistent=persistent) as tape:
            for _ in range(6):
                x = tf.sin(x * weight)
        gradient = tape.gradient(x, weight)
        del x
        # By now only a tape that can be asked again has what it recorded.
        more = tf.zeros((3 * ROWS, WIDTH))
        more = more + 1
        return gradient, tf.reduce_sum(more)

    once, again = (requested(eager(step, X, persistent=flag)) for flag in (False, True))
    assert again >= once + 2


def test_existing_variables_are_read_without_a_copy_as_those_that_never_came_to_be():
    def build() -> keras.Model:
        model = dense("a", "b")
        model.compile("adam", "mse", jit_compile=False)
        return model

    of_function, of_model = (
        estimate(one, batch_size=ROWS, run_eagerly=True).phases["step"] for one in (build, build())
    )
    assert of_model.requested_peak_bytes == of_function.requested_peak_bytes
    model, optimizer = dense("a", "b"), keras.optimizers.SGD()

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - x))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    for phase in eager(step).phases.values():
        assert not [item for item in phase.live_at_peak if item.role.startswith("copy of a variable")]


def test_each_optimizer_makes_its_slots_when_it_gets_its_first_gradients():
    models = dense("first"), dense("second")
    optimizers = keras.optimizers.Adam(), keras.optimizers.Adam()

    def step(x):
        with tf.GradientTape() as one, tf.GradientTape() as other:
            losses = [tf.reduce_mean(model(x)) for model in models]
        for tape, loss, model, optimizer in zip((one, other), losses, models, optimizers, strict=True):
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    made = eager(step)
    ops = list(made.phases["first_step"].timeline.ops)

    def place(*parts: str) -> int:
        return next(number for number, op in enumerate(ops) if all(part in op for part in parts))

    first, second = place("first/kernel", "initializer"), place("second/kernel", "initializer")
    assert place("gradient_tape", "first") < first < place("gradient_tape", "second") < second
    assert made.subject.optimizer == "Adam, Adam"
    held = {item.layer for item in made.phases["step"].live_at_peak if item.category is Category.OPTIMIZER_SLOTS}
    assert any("first" in layer for layer in held)
    assert any("second" in layer for layer in held)
    assert not optimizers[0].built


def test_what_the_first_call_creates_and_does_only_then_is_of_the_first_step():
    class Lazy:
        weight = None

        def step(self, x):
            if self.weight is None:
                wide = tf.zeros((8 * ROWS, WIDTH))
                self.weight = tf.Variable(lambda: tf.ones((WIDTH, WIDTH)), name="late")
                x = x + tf.reduce_sum(wide)
            self.weight.assign_add(tf.ones((WIDTH, WIDTH)))
            return tf.reduce_sum(x @ self.weight)

    lazy = Lazy()
    made = eager(lazy.step)
    assert lazy.weight is None
    assert made.phases["first_step"].requested_peak_bytes >= 9 * OUTPUT > 3 * made.phases["step"].requested_peak_bytes
    assert made.resident_bytes >= WIDTH * WIDTH * 4


def test_values_that_python_asks_for_are_taken_for_ones():
    history = []

    def step(x):
        loss = tf.reduce_mean(x)
        history.append(float(loss))
        if loss > 3:
            x = x + 1
        return x

    assert "taken for ones" in notes(eager(step))
    assert history == []


def test_functions_that_the_step_calls_are_followed_op_by_op():
    inner = tf.function(lambda x: tf.tan(tf.cos(tf.sin(x))))
    made = eager(lambda x: tf.reduce_sum(inner(x)))
    assert requested(made) == pytest.approx(3, abs=0.01)
    assert "a tf.function; what that does was followed op by op" in notes(made)


def test_an_iterator_gives_the_batch():
    data = tf.data.Dataset.from_tensors((tf.zeros((8, WIDTH)), tf.zeros((8,))))

    def step(iterator):
        x, y = next(iterator)
        return tf.reduce_sum(x) + tf.reduce_sum(y)

    made = eager(step, iter(data))
    assert made.subject.batch_size == 8
    assert made.phases["step"].requested_peak_bytes >= 8 * WIDTH * 4


def test_another_batch_size_is_followed_anew():
    def step(x):
        return tf.reduce_sum(tf.sin(x))

    half = eager(step, tf.TensorSpec((None, WIDTH)), batch_size=ROWS // 2)
    assert half.at_batch_size(ROWS).phases == eager(step).phases


def test_a_process_that_runs_functions_eagerly_is_estimated_so():
    step = tf.function(lambda x: tf.reduce_sum(tf.sin(x)))
    tf.config.run_functions_eagerly(True)
    try:
        made = estimate_function(step, X)
        assert tf.config.functions_run_eagerly()
    finally:
        tf.config.run_functions_eagerly(False)
    assert made.subject.mode == "eager"
    assert "tf.config.run_functions_eagerly(True) is set" in notes(made)
    assert made.phases == eager(step).phases


def test_what_contradicts_itself_is_refused():
    with pytest.raises(UsageError, match="run_eagerly=True and jit_compile=True exclude each other"):
        estimate_function(tf.sin, X, run_eagerly=True, jit_compile=True)
    with pytest.raises(UsageError, match="run_eagerly='yes': pass True or False"):
        estimate_function(tf.sin, X, run_eagerly="yes")


def test_what_outlives_a_step_is_there_until_the_next_makes_the_like_and_told():
    class Trainer:
        last = None

        def keeps(self, x):
            wide = tf.zeros((2 * ROWS, WIDTH)) + tf.reduce_sum(x)
            total = tf.reduce_sum(wide)
            del wide
            self.last = tf.sin(x)
            return total

        def gives_up(self, x):
            wide = tf.zeros((2 * ROWS, WIDTH)) + tf.reduce_sum(x)
            total = tf.reduce_sum(wide)
            del wide
            return total + tf.reduce_sum(tf.sin(x))

    trainer = Trainer()
    kept, given_up = eager(trainer.keeps), eager(trainer.gives_up)
    assert kept.phases["first_step"].requested_peak_bytes == given_up.phases["first_step"].requested_peak_bytes
    assert requested(kept) == pytest.approx(requested(given_up) + 1, abs=0.01)
    assert kept.phases["step"].timeline.live_bytes[-1] >= OUTPUT > given_up.phases["step"].timeline.live_bytes[-1]
    assert "something still holds 512.0 KiB of what it made (Sin)" in notes(kept)
    assert "still holds" not in notes(given_up)
    assert trainer.last is None
