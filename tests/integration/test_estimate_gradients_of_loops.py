"""Gradients of loops against a run: the zeros that they are added to are made last, so all under way are there."""

from __future__ import annotations

from tests.integration.processes import answer_of

PROGRAM = """
    import json

    import memest
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    weight, count = tf.Variable(tf.random.normal((512, 512)) * 0.03), tf.Variable(12)


    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            body = lambda number, h: (number + 1, tf.tanh(h @ weight) + h)
            _, h = tf.while_loop(lambda number, h: number < count, body, (0, x))
            loss = tf.reduce_mean(h**2)
        weight.assign_sub(tape.gradient(loss, weight))
        return loss


    made = memest.estimate_function(step, tf.TensorSpec((128, 512)))
    batch, measured = tf.random.uniform((128, 512)), []
    for _ in range(6):
        tf.config.experimental.reset_memory_stats("CPU:0")
        step(batch)
        measured.append(tf.config.experimental.get_memory_info("CPU:0")["peak"])
    print(json.dumps([made.phases["step"].peak_bytes, measured]))
"""


def test_gradients_of_all_iterations_under_way_are_there():
    estimated, measured = answer_of(PROGRAM)
    assert 0.85 * min(measured) <= estimated <= 1.15 * max(measured)
    # Ten iterations of a loop may be under way.
    assert estimated > 10 * 4 * 512 * 512
