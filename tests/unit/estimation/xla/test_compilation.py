"""XLA asked for a step, in a process of its own."""

from __future__ import annotations

import re

import keras
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.xla import compilation
from tensorboard_plugin_memest.estimation.xla.compilation import compiled
from tensorboard_plugin_memest.estimation.xla.module import module_of
from tensorboard_plugin_memest.estimation.xla.request import NotCompilableError, Request
from tensorboard_plugin_memest.memory.category import Category

L = keras.layers


def build() -> keras.Model:
    model = keras.Sequential(
        [keras.Input((6, 10)), L.LSTM(300, name="lstm"), L.Dropout(0.1), L.Dense(3, name="out")], name="model"
    )
    model.compile("adam", "mse", jit_compile=True)
    return model


def test_an_estimate_with_xla_is_the_compilers_and_is_compiled_once(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("MEMEST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "PATIENCE", 0.0)
    made = estimate(build, batch_size=32)
    assert made.subject.mode == "xla"
    assert re.search(r"XLA compiles the step.*\n.*XLA took \d+\.\d s\.", capfd.readouterr().err)
    assert not [note for note in made.assumptions if "APPROXIMATION" in note]
    for phase in made.phases.values():
        assert sum(item.bytes for item in phase.live_at_peak) == phase.peak_bytes == phase.timeline.peak_bytes
    # Every moment of the curve is somebody's: fusions are their layers'.
    step = made.phases["step"]
    assert set(step.timeline.ops) - {"(start)", "(end of the step)"} <= set(step.owners)
    assert {whose.layer.partition("/")[0] for whose in step.owners.values()} >= {"lstm", "out", "(optimizer)"}
    held = {(item.layer.partition("/")[0], item.category) for item in made.phases["step"].live_at_peak}
    assert {("lstm", Category.WEIGHTS), ("lstm", Category.OPTIMIZER_SLOTS), ("lstm", Category.ACTIVATIONS)} <= held
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()

    # Again, from the cache: nothing is started.
    monkeypatch.setattr(compilation, "_compile", None)
    assert estimate(build, batch_size=32) == made
    assert path.read_bytes() == before


def test_what_xla_refuses_is_said_and_the_same_process_compiles_the_next_step(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMEST_CACHE_DIR", str(tmp_path))
    wrong = Request(b"", (), ("no_such_node:0",))
    with tf.Graph().as_default() as graph:
        tf.constant([1.0, 2.0], name="two")
    right = Request(graph.as_graph_def().SerializeToString(), (), ("two:0",))
    with compilation.compilers():
        with pytest.raises(NotCompilableError, match=r"XLA refused it .*no_such_node"):
            compiled(wrong, 60.0)
        assert list(tmp_path.iterdir()) == []
        compilation.compile_ahead(right, 60.0)
        assert module_of(compiled(right, 60.0)).instructions
        pool = compilation._pool.get()
        (process,) = pool._compilers
        assert process._steps == 2
    assert process._process is None
    assert compilation._pool.get() is None


def test_waiting_has_an_end():
    with pytest.raises(NotCompilableError, match=r"not compile it within compile_timeout=0\.2 seconds"):
        compilation._compile(Request(b"", (), ()), 0.2)
