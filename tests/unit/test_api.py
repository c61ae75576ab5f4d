"""`log_model`: what it writes, what it refuses, and what it never does to a training."""

from __future__ import annotations

import warnings
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

import memest
from tensorboard_plugin_memest import api
from tensorboard_plugin_memest.log.metadata import Kind, parse_content
from tensorboard_plugin_memest.log.record import decode
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers


def mlp() -> keras.Model:
    model = keras.Sequential([keras.Input((6,)), L.Dense(8), L.Dense(1)])
    model.compile("adam", "mse")
    return model


def logged(run: Path) -> list[object]:
    """The records in a run's log directory but for headlines, which only repeat of the estimates."""
    found = []
    for file in sorted((run / "memest").glob("*tfevents*")):
        for event in EventFileLoader(str(file)).Load():
            for value in event.summary.value:
                kind = parse_content(value.metadata.plugin_data.content).kind
                if kind is not Kind.HEADLINE:
                    found.append(decode(kind, tensor_util.make_ndarray(value.tensor).item()))
    return found


def test_the_estimate_is_returned_and_is_what_is_logged(tmp_path):
    model = mlp()
    made = memest.log_model(model, batch_size=4, logdir=tmp_path)
    assert isinstance(made, Estimate)
    assert made == memest.estimate(model, batch_size=4)
    assert logged(tmp_path) == [made]


def test_a_function_that_builds_the_model_can_be_logged(tmp_path):
    made = memest.log_model(mlp, batch_size=4, logdir=str(tmp_path))
    assert logged(tmp_path) == [made]


def test_the_default_writers_directory_is_taken(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path / "train")).as_default():
        made = memest.log_model(mlp(), batch_size=4)
    assert logged(tmp_path / "train") == [made]


def test_without_a_directory_it_says_what_to_pass():
    with pytest.raises(ValueError, match="logdir"):
        memest.log_model(mlp(), batch_size=4)


def test_the_batch_size_may_be_left_to_fits_default(tmp_path):
    made = memest.log_model(mlp(), logdir=tmp_path)
    assert made is not None
    assert made.subject.batch_size == 32
    assert any("32, the default of model.fit" in note for note in made.assumptions)


def test_advice_is_logged_where_it_is_asked_for(tmp_path):
    made = memest.log_model(
        mlp,
        batch_size=1,
        logdir=tmp_path,
        limit="1.5GiB",
        advice=True,
        jit_compile=False,
        device="GPU",
        compile_timeout=0,
    )
    estimate, advice = logged(tmp_path)
    assert estimate == made
    assert isinstance(advice, memest.Advice)
    assert advice.limit_bytes == 3 * 2**29
    assert advice.fits
    assert "sgd" in {lever.name for lever in advice.levers}


def test_other_choices_are_logged_where_they_are_asked_for(tmp_path):
    options = {"jit_compile": False, "device": "GPU", "compile_timeout": 0}
    made = memest.log_model(mlp, batch_size=4, logdir=tmp_path, what_if=0.001, **options)
    estimate, what_if = logged(tmp_path)
    assert estimate == made
    assert isinstance(what_if, memest.WhatIf)
    assert what_if().peak_bytes == made.peak_bytes
    assert what_if(batch_size=8).peak_bytes == made.at_batch_size(8).peak_bytes
    assert "combinations were left out, after 0.001 seconds" in what_if.notes[0]


def test_a_limit_is_logged_with_the_estimate(tmp_path):
    made = memest.log_model(mlp(), batch_size=4, logdir=tmp_path, limit="1.5GiB")
    assert made is not None
    assert made.limit_bytes == 3 * 2**29
    assert logged(tmp_path) == [made]
    assert memest.log_model(mlp(), batch_size=4, logdir=tmp_path, limit=12345).limit_bytes == 12345


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be a positive integer"),
        ({"batch_sise": 4}, TypeError, "batch_sise"),
        ({"optimizer": "adamm"}, ValueError, "adamm"),
        ({"what_if": "SGD"}, ValueError, "what_if='SGD': pass True, False, or the seconds"),
        ({"limit": "much"}, ValueError, "'much' is not a memory size"),
        ({"device": "TPU"}, ValueError, "device must be"),
        ({"jit_compile": "always"}, ValueError, "pass True for XLA"),
        ({"inputs": (None, 6)}, ValueError, "inputs= takes tf.TensorSpecs"),
    ],
)
def test_misuse_raises_at_the_call_and_logs_nothing(tmp_path, arguments, error, words):
    with pytest.raises(error, match=words):
        memest.log_model(mlp(), logdir=tmp_path, **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: 3, TypeError, "The first argument of log_model must be"),
        (lambda: lambda: 3, TypeError, "What the function returns must be"),
        (lambda: lambda n: mlp(), TypeError, "cannot be called without arguments"),
        (lambda: keras.Sequential([L.Dense(1)]), ValueError, "is not built"),
        (lambda: keras.Sequential([keras.Input((6,)), L.Dense(1)]), ValueError, "has no optimizer"),
    ],
)
def test_what_is_no_model_to_train_raises_too(tmp_path, make, error, words):
    with pytest.raises(error, match=words):
        memest.log_model(make(), batch_size=4, logdir=tmp_path)


def breaks(*_, **__):
    raise KeyError("something inside")


@pytest.mark.parametrize("part", ["estimate", "RunWriter"])
def test_when_memest_itself_fails_it_warns_once_and_the_training_goes_on(tmp_path, monkeypatch, part):
    monkeypatch.setattr(api, part, breaks)
    with pytest.warns(RuntimeWarning, match=r"KeyError: 'something inside'.*the training goes on without it") as warned:
        assert memest.log_model(mlp(), batch_size=4, logdir=tmp_path) is None
    assert len(warned) == 1
    assert warned[0].filename == __file__, "the warning points at the user's line"


def test_a_step_that_cannot_be_traced_warns_and_the_training_goes_on(tmp_path):
    class Odd(keras.Model):
        def train_step(self, data):
            raise KeyError("not today")

    inputs = keras.Input((6,))
    model = Odd(inputs, L.Dense(1)(inputs))
    model.compile("sgd", "mse")
    with pytest.warns(RuntimeWarning, match="not today"):
        assert memest.log_model(model, batch_size=4, logdir=tmp_path) is None


def test_a_directory_that_cannot_be_written_warns_and_the_training_goes_on(tmp_path):
    (tmp_path / "memest").write_text("a file where the records should go")
    with pytest.warns(RuntimeWarning, match="the training goes on without it"):
        assert memest.log_model(mlp(), batch_size=4, logdir=tmp_path) is None


def test_nothing_is_printed_or_warned_when_all_is_well(tmp_path, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memest.log_model(mlp(), batch_size=4, logdir=tmp_path)
    out, err = capfd.readouterr()
    assert out == ""
    assert [line for line in err.splitlines() if "memest" in line] == []


def test_it_can_be_called_in_a_function_that_is_traced(tmp_path):
    model = mlp()
    made = []

    @tf.function
    def step():
        made.append(memest.log_model(model, batch_size=4, logdir=str(tmp_path)))
        return tf.zeros(())

    step()
    assert logged(tmp_path) == made[:1]


def test_a_training_can_follow(tmp_path):
    model = mlp()
    memest.log_model(model, batch_size=4, logdir=tmp_path)
    history = model.fit(np.ones((8, 6)), np.ones((8, 1)), verbose=0)
    assert np.isfinite(history.history["loss"][0])


def numbers() -> tf.data.Dataset:
    return tf.data.Dataset.range(100).map(lambda one: tf.zeros((50,)) + tf.cast(one, tf.float32)).cache().batch(10)


def test_the_estimate_of_a_pipeline_is_returned_and_is_what_is_logged(tmp_path):
    dataset = numbers()
    made = memest.log_dataset(dataset, logdir=tmp_path)
    assert made == memest.estimate_dataset(dataset)
    assert made.peak_bytes > 100 * 200
    assert logged(tmp_path) == [made]


def test_a_pipeline_goes_to_the_default_writers_directory_and_beside_a_model(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path / "train")).as_default():
        model = memest.log_model(mlp(), batch_size=4)
        pipeline = memest.log_dataset((np.zeros((9, 6)), np.zeros(9)), batch_size=4)
    assert logged(tmp_path / "train") == [model, pipeline]


def test_what_is_no_pipeline_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(TypeError, match=r"tf\.data\.Dataset"):
        memest.log_dataset("data", logdir=tmp_path)
    with pytest.raises(ValueError, match="batch_size"):
        memest.log_dataset(numbers(), logdir=tmp_path, batch_size=0)
    with pytest.raises(TypeError, match="batchsize"):
        memest.log_dataset(numbers(), logdir=tmp_path, batchsize=4)
    assert not list(tmp_path.iterdir())


def test_a_failure_over_a_pipeline_is_one_warning_at_the_callers_line(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no idea")

    monkeypatch.setattr(api, "estimate_dataset", fail)
    with pytest.warns(RuntimeWarning, match=r"could not log this data pipeline \(RuntimeError: no idea\)") as caught:
        assert memest.log_dataset(numbers(), logdir=tmp_path) is None
    assert caught[0].filename == __file__
