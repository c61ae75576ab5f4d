"""Variables that are created without memory, and what creating them would take."""

from __future__ import annotations

import gc

import keras
import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation import creation
from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.eager import BuildingGraph, traced_eagerly
from tests.integration.processes import answer_of


def test_variables_have_a_shape_and_a_handle_but_no_value():
    creations = Creations()
    with creations.recorded():
        variable = keras.Variable("glorot_uniform", shape=(64, 32), name="kernel")
    assert variable.shape == (64, 32)
    (creation,) = creations.all
    assert creation.handle is variable.handle
    assert (creation.shape, creation.dtype) == ((64, 32), "float32")
    assert creation.name.startswith("kernel")
    assert creation.run.made[creation.run.result].bytes == 64 * 32 * 4
    # Its value is none that could be read.
    assert isinstance(variable.handle, tf.Tensor)
    assert not hasattr(variable.handle, "numpy")


def test_plain_variables_are_created_so_too():
    creations = Creations()
    with creations.recorded():
        fixed = tf.Variable(tf.fill((3, 4), 1.0), name="fixed")
        scalar = tf.Variable(0, dtype="int64")
        later = tf.Variable(lambda: tf.fill((5,), 1.0))
        flexible = tf.Variable(tf.fill((2, 2), 1.0), shape=tf.TensorShape((None, 2)))
    assert [(one.shape, one.dtype) for one in creations.all] == [
        ((3, 4), "float32"),
        ((), "int64"),
        ((5,), "float32"),
        ((2, 2), "float32"),
    ]
    assert flexible.shape.rank == 2
    assert [one.handle for one in creations.all] == [one.handle for one in (fixed, scalar, later, flexible)]


def test_variables_may_be_called_what_graphs_would_not_take():
    creations = Creations()
    with creations.recorded():
        for name in ("_table/embeddings", "an embedding", "(odd)"):
            tf.Variable(tf.fill((3,), 1.0), name=name)
    assert [one.shape for one in creations.all] == [(3,), (3,), (3,)]


def test_creations_are_in_order_and_only_those_inside():
    creations = Creations()
    before = keras.Variable(1.0)
    with creations.recorded():
        layer = keras.layers.Dense(3)
        layer.build((None, 4))
    after = keras.Variable(1.0)
    assert [one.handle for one in creations.all] == [layer.kernel.handle, layer.bias.handle]
    assert float(before) == float(after) == 1.0


def test_an_inner_recording_has_what_is_created_inside_it():
    outer, inner = Creations(), Creations()
    with outer.recorded():
        keras.Variable(1.0)
        with inner.recorded():
            keras.Variable(1.0)
        keras.Variable(1.0)
    assert (len(outer.all), len(inner.all)) == (2, 1)


def test_a_creation_knows_whether_its_variable_is_still_held():
    creations = Creations()
    with creations.recorded():
        kept = keras.Variable(1.0)
        keras.Variable(2.0)
    gc.collect()
    assert [one.is_held for one in creations.all] == [True, False]
    assert kept.shape == ()


def test_small_variables_may_have_values():
    creations = Creations(real_up_to=1024)
    with creations.recorded():
        small = keras.Variable("ones", shape=(16, 16), name="small")
        large = keras.Variable("ones", shape=(16, 17), name="large")
    assert np.array_equal(small.numpy(), np.ones((16, 16)))
    small.assign(np.zeros((16, 16)))
    assert np.array_equal(small.numpy(), np.zeros((16, 16)))
    assert [one.handle for one in creations.all] == [small.handle, large.handle]
    assert [one.handle for one in creations.without_value] == [large.handle]
    assert creations.all[0].run.made[creations.all[0].run.result].bytes == 1024


NOTHING = """
    import json
    import keras, tensorflow as tf
    from tensorboard_plugin_memest.estimation.creation import Creations

    with Creations().recorded():
        variable = keras.Variable("glorot_uniform", shape=(2**20, 2**12), name="kernel")
        optimizer = keras.optimizers.Adam()
        optimizer.build([variable])
        peak = tf.config.experimental.get_memory_info("CPU:0")["peak"]
    print(json.dumps(peak))
"""


def test_sixteen_gib_of_variables_take_next_to_nothing():
    # A few numbers of Python's that optimizers are made with become tensors.
    assert answer_of(NOTHING) < 4096


def test_what_fills_a_variable_is_traced_once_for_each_shape_dtype_and_value(monkeypatch):
    traced = []
    monkeypatch.setattr(
        creation, "traced_eagerly", lambda function: traced.append(function) or traced_eagerly(function)
    )
    wanted = [
        ("zeros", (4, 3), "float32"),
        ("ones", (4, 3), "float32"),
        ("zeros", (4, 3), "float16"),
        ("zeros", (5000,), "float32"),
        ("glorot_uniform", (4, 3), "float32"),
    ]
    creations = Creations()
    with creations.recorded():
        for _ in range(3):
            for initializer, shape, dtype in wanted:
                keras.Variable(initializer, shape=shape, dtype=dtype)
    # Four fillings once, and a random start each time.
    assert len(traced) == 4 + 3
    for (initializer, shape, dtype), made in zip(wanted * 3, creations.all, strict=True):
        anew = traced_eagerly(lambda i=initializer, s=shape, d=dtype: keras.initializers.get(i)(s, dtype=d))
        assert (made.shape, made.dtype) == (shape, dtype)
        assert made.run == anew


def test_the_users_own_initializers_are_traced_each_time():
    class Zeros(keras.initializers.Zeros):
        def __call__(self, shape, dtype=None):
            return super().__call__(shape, dtype) + tf.zeros(shape, dtype)

    creations = Creations()
    with creations.recorded():
        keras.Variable("zeros", shape=(2000,), dtype="float32")
        keras.Variable(Zeros(), shape=(2000,), dtype="float32")
    plain, own = creations.all
    assert len(plain.run.made) < len(own.run.made)


def test_first_values_that_are_tensors_are_known():
    around = BuildingGraph("build")
    creations = Creations(around=around)
    outside = tf.constant([7, 8])
    with around.as_default(), creations.recorded():
        tf.Variable(tf.constant(5) * 3)
        tf.Variable(outside)
        keras.Variable(0.25)
    creations.done()
    assert [np.array(one.run.value).tolist() for one in creations.all] == [15, [7, 8], 0.25]


def test_a_variable_takes_over_a_tensor_of_the_code_around_it():
    around = BuildingGraph("build")
    creations = Creations(around=around)
    with around.as_default(), creations.recorded():
        noise = tf.random.normal((300, 200))
        variable = tf.Variable(noise * 0.5)
        variable + 1.0
        late = tf.Variable(noise)
    building = creations.done()
    with around.as_default():
        tf.random.normal((9, 9))
    shapes = [(made.op, made.shape) for made in building.made if made.bytes > 100]
    assert shapes[0] == ("RandomStandardNormal", (300, 200))
    first, last = creations.all
    # Reading a variable is no copy of it.
    assert [building.made[one.value].op for one in (first, last)] == ["Mul", building.made[last.value].op]
    assert {op for op, _ in shapes} <= {"RandomStandardNormal", "Mul", "AddV2", "Identity"}
    assert first.moment <= last.moment <= len(building.steps)
    assert last.value != first.value
    assert not first.run.made, "nothing is made for it alone"
    assert late.shape == variable.shape
