"""What a function that builds a model makes besides variables, against what building the model takes in a process."""

from __future__ import annotations

import pytest

from tests.integration.processes import answer_of

PROGRAM = """
    import json
    import sys

    import keras
    import memest
    import tensorflow as tf

    L = keras.layers


    class Own(keras.Model):
        # Variables that begin as tensors, and a table that is kept.
        def __init__(self):
            super().__init__()
            self.first = tf.Variable(tf.random.normal((256, 4096)) * 0.1)
            self.last = tf.Variable(tf.random.normal((4096, 10)))
            self.table = tf.cast(tf.ones((4096, 256), tf.float64), tf.float32)

        def call(self, x):
            return tf.nn.relu((x + self.table[:1]) @ self.first) @ self.last


    class Called(keras.Model):
        # Gets its weights when it is first called.
        def __init__(self):
            super().__init__()
            self.layers_of_it = [L.Conv2D(16, 3, padding="same", activation="relu"), L.Flatten(), L.Dense(10)]

        def call(self, x):
            for layer in self.layers_of_it:
                x = layer(x)
            return x


    def build():
        model = {"variables of tensors": Own, "called": Called}[sys.argv[1]]()
        model(tf.zeros(shape))
        model.compile("sgd", "mse", jit_compile=False)
        return model


    shape = (8, 96, 96, 3) if sys.argv[1] == "called" else (8, 256)
    made = memest.estimate(build, batch_size=8, inputs=tf.TensorSpec(shape), targets=tf.TensorSpec((8, 10)))
    start = tf.config.experimental.get_memory_info("CPU:0")["current"]
    tf.config.experimental.reset_memory_stats("CPU:0")
    model = build()
    measured = tf.config.experimental.get_memory_info("CPU:0")["peak"] - start
    print(json.dumps([made.phases["build"].peak_bytes, measured]))
"""


@pytest.mark.parametrize("name", ["variables of tensors", "called"])
def test_building_takes_what_its_code_makes_besides_variables(name):
    estimated, measured = answer_of(PROGRAM, name)
    assert estimated == pytest.approx(measured, rel=0.02)
