"""The host memory of data pipelines against the rise of a process's resident set."""

from __future__ import annotations

import pytest

from tests.integration.processes import answer_of

# One malloc arena: what one thread frees serves the others.
SETTINGS = {"MALLOC_ARENA_MAX": "1"}

PIPELINE = """
    import gc, json, sys
    import numpy as np, tensorflow as tf
    import memest
    from benchmarks.host_measure import _warm_up, resident, rise_of
    Dataset = tf.data.Dataset
    _warm_up()
    before = resident()
    dataset = eval(sys.argv[1])
    tf.convert_to_tensor([1.0])
    measured = rise_of(dataset, before, epochs=1)
    estimate = memest.estimate_dataset(dataset)
    print(json.dumps([measured, estimate.peak_bytes, estimate.slack_bytes]))
"""


@pytest.mark.parametrize(
    "pipeline",
    [
        "Dataset.range(64).map(lambda one: tf.zeros((1491, 257, 1)) + tf.cast(one, tf.float32)).cache().shuffle(99)",
        "Dataset.range(400_000).shuffle(400_000)",
    ],
    ids=["founding", "scalars"],
)
def test_a_pipeline_needs_what_is_predicted(pipeline):
    measured, peak, slack = answer_of(PIPELINE, pipeline, environment=SETTINGS)
    assert 0.9 * peak <= measured <= 1.1 * (peak + slack)


def test_fit_on_arrays_needs_what_is_predicted():
    measured, startup, peak, predicted, predicted_startup = answer_of(
        """
        import gc, json, time
        import keras, numpy as np
        import memest
        from benchmarks.host_measure import peak, reset_peak, resident

        def arrays(count):
            return np.ones((count, 128, 128, 1), "uint16"), np.ones((count, 128, 128, 1), "float32")

        class Watch(keras.callbacks.Callback):
            seen = []

            def on_train_batch_end(self, batch, logs=None):
                # A consumer slower than the pipeline, so that the buffers fill: what is predicted is their peak.
                time.sleep(0.02)
                self.seen.append(peak())
                reset_peak()

        model = keras.Sequential([keras.Input((128, 128, 1)), keras.layers.AveragePooling2D(1)])
        model.compile("sgd", "mse", jit_compile=False)
        model.fit(*arrays(64), verbose=0)
        x, y = arrays(1000)
        gc.collect()
        before = resident()
        reset_peak()
        watch = Watch()
        model.fit(x, y, verbose=0, callbacks=[watch])
        estimate = memest.estimate_dataset((x, y))
        later = max(watch.seen[3:]) - before
        answer = [later, watch.seen[0] - before, x.nbytes + y.nbytes, estimate.peak_bytes, estimate.startup_bytes]
        print(json.dumps(answer))
        """,
        environment=SETTINGS,
    )
    assert peak < measured < 1.4 * peak
    # tf.data decides as it runs how many of the batches that it may gather ahead it does: five here, three often.
    batch = 32 * 128 * 128 * 6
    assert predicted - 4 * batch <= measured <= predicted + batch
    assert predicted_startup == pytest.approx(startup, rel=0.1)
