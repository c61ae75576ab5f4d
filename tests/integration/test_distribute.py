"""Trainings that `tf.distribute` spreads over logical devices and over processes: estimated, measured, merged."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext

from tensorboard_plugin_memest.memory.comparison import compare
from tensorboard_plugin_memest.plugin import views
from tensorboard_plugin_memest.plugin.reader import Reader, RunRecords
from tests.integration.processes import EXACT, answer_of

MODEL = """
import json, os, sys
import numpy as np, tensorflow as tf, keras, memest
from tensorboard_plugin_memest.measure.callback import MemoryCallback

def build():
    model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(1024, activation="relu"),
                              keras.layers.Dropout(0.2), keras.layers.Dense(1024, activation="relu"),
                              keras.layers.Dense(10)])
    model.compile("adam", "mse", metrics=["mae"])
    return model

x, y = np.zeros((768, 256), "float32"), np.zeros((768, 10), "float32")
in_use = lambda: tf.config.experimental.get_memory_info("CPU:0")["current"]
peaks = lambda estimate: {name: [phase.peak_bytes, *phase.peak_range] for name, phase in estimate.phases.items()}
"""

MIRRORED = (
    MODEL
    + """
cpu, = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
def spread():
    with strategy.scope():
        return build()

before = in_use()
of_function = memest.estimate(spread, batch_size=129)
allocated = in_use() - before
model = spread()
with strategy.scope():
    of_model = memest.estimate(model, batch_size=129)
    alone = memest.estimate(build, batch_size=65)
step = of_function.phases["step"]
model.fit(x, y, batch_size=128, epochs=1, verbose=0, callbacks=[MemoryCallback(sys.argv[1])])
held = sorted({int(v.value.values[1].shape.num_elements()) for v in model.trainable_variables})
print(json.dumps({
    "allocated": allocated, "of_function": peaks(of_function), "of_model": peaks(of_model), "alone": peaks(alone),
    "subject": of_model.subject.to_dict(), "notes": of_model.assumptions,
    "summed": sorted({whose.variable for whose in step.owners.values() if whose.role == "summed gradient"} - {None}),
    "buffers": sorted(op for op, whose in step.owners.items() if whose.role == "all-reduce buffer"),
    "resident": of_function.resident_bytes,
    "shapes": [layer.info.output_shape[0] for layer in of_model.layers if layer.info.output_shape],
    "doubled": [of_function.at_batch_size(258).peak_bytes, memest.estimate(model, batch_size=258).peak_bytes,
                of_function.at_batch_size(258).subject.batch_size],
}))
"""
)


def records(logdir) -> RunRecords:
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(logdir))
    multiplexer.Reload()
    return Reader(MultiplexerDataProvider(multiplexer, str(logdir))).run(RequestContext(), "", ".")


def test_mirrored_on_two_logical_cpus(tmp_path):
    found = answer_of(MIRRORED, str(tmp_path))
    # Learning rate, counters and the like; no weight.
    assert found["allocated"] < 100_000
    assert found["of_function"] == found["of_model"]
    subject = found["subject"]
    assert (subject["batch_size"], subject["replicas"], subject["strategy"]) == (129, 2, "MirroredStrategy")
    assert "gets 65 of the 129 examples" in found["notes"][0]
    assert set(found["shapes"]) == {65}
    # The sum of the gradients, 1,323,018 elements of 4 bytes, is split up while it is there; what both are is told.
    assert found["of_model"]["step"][0] >= found["resident"] + 2 * 4 * 1_323_018
    assert found["buffers"] == ["adam/concat"]
    assert len(found["summed"]) >= 1
    # Sums apart a replica needs what one device needs for its share.
    assert found["alone"]["build"] == found["of_model"]["build"]
    first, second, size = found["doubled"]
    assert (first, size) == (second, 258)

    run = records(tmp_path)
    (peaks,) = run.peaks
    assert (peaks.device, peaks.shared_by, peaks.steps) == ("CPU:0", 2, 6)
    compared = compare(run.estimate, peaks)
    assert compared.predicted_peak_bytes == 2 * run.estimate.peak_bytes
    low, high = run.estimate.phases["step"].peak_range
    # Two replicas and their chunks in one small pool: slack is what is left of the difference.
    assert 0.8 * 2 * low < compared.phases["step"] < 1.3 * 2 * high


WORKER = (
    MODEL
    + """
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = build()
data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(128))
@tf.function
def train(batch):
    return strategy.run(model.train_step, args=(batch,))
estimate = memest.estimate(model, batch_size=128)
with memest.monitor(sys.argv[1], estimate=estimate) as m:
    for batch in data:
        with m.step():
            train(batch)
print(json.dumps([m.steps, peaks(estimate)]))
"""
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_two_workers_make_one_run(tmp_path):
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    workers = []
    for index in range(2):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, **EXACT, "TF_CPP_MIN_LOG_LEVEL": "2", "TF_CONFIG": json.dumps(task)}
        workers.append(
            subprocess.Popen(
                [sys.executable, "-c", WORKER, str(tmp_path)],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    try:
        outputs = [worker.communicate(timeout=240) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    # One that fails takes the other with it, so what both say counts.
    problems = "\n".join(told for _, told in outputs)
    assert [worker.returncode for worker in workers] == [0, 0], problems
    assert "memest failed" not in problems
    answers = [json.loads(out.splitlines()[-1]) for out, _ in outputs]
    assert answers[0] == answers[1]
    assert answers[0][0] == 6

    run = records(tmp_path)
    assert run.problems == []
    assert run.estimate.subject.replicas == 2
    assert [(peaks.label, peaks.steps, peaks.shared_by) for peaks in run.peaks] == [
        ("CPU:0", 6, 1), ("worker 1, CPU:0", 6, 1),
    ]  # fmt: skip
    for name in ("first_step", "step"):
        low, high = run.estimate.phases[name].peak_range
        for peaks in run.peaks:
            # An unsplit chunk in such a small pool is up to a tenth of it, which ones are is chance, and what is sent
            # and received comes when the other worker does.
            assert 0.75 * low < compare(run.estimate, peaks).phases[name] < 1.25 * high
    # The first worker sends the slots' first values, zeros of 5.05 MiB for each of Adam's two, to the other: these and
    # what is sent lie beside the weights and slots. That is more than the step itself takes.
    first = run.estimate.phases["first_step"]
    assert first.peak_bytes > 6 * 4 * 1_323_018 > run.estimate.phases["step"].peak_bytes
    assert sum(item.bytes for item in first.live_at_peak if item.role == "sent to other workers") > 2 * 4 * 1_323_018
    assert [device["device"] for device in views.measured_view(run)["devices"]] == ["CPU:0", "worker 1, CPU:0"]
