"""The code of every change, pasted into a script: it runs, and what it makes needs what was said."""

from __future__ import annotations

import ast
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.advise.levers import proposals
from tensorboard_plugin_memest.advise.proposal import Proposal
from tensorboard_plugin_memest.advise.workshop import Workshop
from tensorboard_plugin_memest.estimation import model as estimation
from tensorboard_plugin_memest.memory.estimate import Estimate

L = keras.layers
BATCH = 16

# Layers by the name of the one that they take the place of.
Instead = dict[str, list[keras.layers.Layer]]


def images(instead: Instead) -> keras.Model:
    inputs = keras.Input((24, 24, 2))
    x = L.Conv2D(6, 3, activation="relu", name="convolution")(inputs)
    for layer in instead.get("flat", [L.Flatten(name="flat")]):
        x = layer(x)
    for layer in instead.get("hidden", [L.Dense(32, activation="relu", kernel_regularizer="l2", name="hidden")]):
        x = layer(x)
    model = keras.Model(inputs, L.Dense(1, name="head")(x))
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 100)), "mse", jit_compile=False)
    return model


def words(instead: Instead) -> keras.Model:
    tokens = keras.Input((6,), dtype="int32")
    x = tokens
    for layer in instead.get("words", [L.Embedding(2500, 32, embeddings_initializer="ones", name="words")]):
        x = layer(x)
    x = L.Dense(8, activation="relu", name="narrow")(x)
    model = keras.Model(tokens, L.Dense(2500, activation="softmax", name="scores")(x))
    model.compile("rmsprop", "sparse_categorical_crossentropy", jit_compile=False)
    return model


def steps(instead: Instead) -> keras.Model:
    model = keras.Sequential([keras.Input((6, 4))])
    for layer in instead.get("head", [L.TimeDistributed(L.Dense(5, activation="softmax"), name="head")]):
        model.add(layer)
    model.compile("adam", "mse", jit_compile=False)
    return model


def classes(_: Instead) -> keras.Model:
    model = keras.Sequential([keras.Input((4,)), L.Dense(8), L.Dense(3000, activation="softmax")])
    model.compile("adam", "categorical_crossentropy", jit_compile=False)
    return model


def maps(instead: Instead) -> keras.Model:
    inputs = instead.get("inputs", [keras.Input((64, 64, 2))])[0]
    x = L.Conv2D(6, 3, activation="relu")(inputs)
    x = L.GlobalAveragePooling2D()(L.Conv2D(8, 3, strides=2, activation="relu")(x))
    model = keras.Model(inputs, L.Dense(1, name="head")(x))
    model.compile("adam", "mse", jit_compile=False)
    return model


DATA = {
    images: lambda: (np.zeros((32, 24, 24, 2), "float32"), np.zeros((32, 1), "float32")),
    words: lambda: (np.arange(32 * 6, dtype="int32").reshape(32, 6), np.zeros((32, 6), "int32")),
    steps: lambda: (np.zeros((32, 6, 4), "float32"), np.zeros((32, 6, 5), "float32")),
    classes: lambda: (np.zeros((32, 4), "float32"), np.eye(32, 3000, dtype="float32")),
    maps: lambda: (np.zeros((32, 64, 64, 2), "float32"), np.zeros((32, 1), "float32")),
}
EXPECTED = {
    images: {
        "sgd",
        "mixed_bfloat16",
        "half_batch",
        "accumulation",
        "validation_batch",
        "xla",
        "recomputation",
        "freeze",
    }
    | {"lora", "checkpoint_format", "histogram_freq", "global_pooling", "pooling", "bottleneck", "smaller_dense_16"},
    words: {
        "lora",
        "factorized_embedding",
        "smaller_vocabulary",
        "chunked_softmax",
        "sampled_softmax",
    },
    steps: {"undistributed"},
    classes: {"sparse_labels", "freeze"},
    maps: {"smaller_input", "narrower"},
}
# Which layer those that the code makes take the place of.
REPLACED = {
    "global_pooling": "flat",
    "pooling": "flat",
    "bottleneck": "flat",
    "smaller_dense_16": "hidden",
    "smaller_dense_4": "hidden",
    "factorized_embedding": "words",
    "smaller_vocabulary": "words",
    "smaller_input": "inputs",
    "undistributed": "head",
}
# What the model is made in, before which these have to stand.
BEFORE = {"mixed_float16", "mixed_bfloat16"}
# What is no change to the model, or is held against the same by hand elsewhere. Beside a sampled softmax the whole
# model stays in a script.
ONLY_RUNS = {"half_batch", "validation_batch", "checkpoint_format", "histogram_freq", "xla", *BEFORE}
ONLY_RUNS |= {"accumulation", "sampled_softmax", "sgd", "sgd_momentum", "adafactor", "lion"}


def estimate(subject: Any, batch_size: int = BATCH) -> Estimate:
    """For a GPU, whose one order is played quickly."""
    return estimation.estimate(subject, batch_size=batch_size, device="GPU", compile_timeout=0, jit_compile=False)


def pasted(proposal: Proposal, build: Any) -> dict[str, Any]:
    """What the names in a script stand for after the code of `proposal`."""
    x, y = DATA[build]()
    names = {"keras": keras, "layers": L, "tf": tf, "x": x, "y": y, "validation_data": (x, y)}
    if proposal.name not in BEFORE:
        names["model"] = build({})
    lines = ast.parse(proposal.code).body
    if proposal.name in REPLACED:
        in_place = [line.value for line in lines if isinstance(line, ast.Expr)]
        lines = [line for line in lines if not isinstance(line, ast.Expr)]
        made = [eval(compile(ast.Expression(one), proposal.name, "eval"), names) for one in in_place]
        names["model"] = build({REPLACED[proposal.name]: made})
    exec(compile(ast.Module(lines, []), proposal.name, "exec"), names)
    if proposal.name in BEFORE:
        names["model"] = build({})
    if "optimizer" in names:
        names["model"].compile(names["optimizer"], names["model"].loss, jit_compile=False)
    return names


@pytest.mark.parametrize("build", [images, words, steps, classes, maps])
def test_it_runs_and_needs_what_was_said(build):
    made = estimate(lambda: build({}))
    workshop = Workshop(made.origin, made)
    callbacks = [keras.callbacks.ModelCheckpoint("a.keras"), keras.callbacks.TensorBoard("logs", histogram_freq=1)]
    found = {one.name: one for one in proposals(workshop.blueprint(), made, 16, callbacks)}
    assert found.keys() >= EXPECTED[build]
    for name in found if build is images else EXPECTED[build]:
        proposal = found[name]
        try:
            names = pasted(proposal, build)
            model = names.get("chunked") or names.get("sampled") or names.get("narrower") or names["model"]
            if name not in ONLY_RUNS:
                # Without the pool's slack, which what was made before the training decides, too.
                by_code, said = estimate(model).peak_phase, workshop.tried(proposal.change).peak_phase
                assert by_code.requested_peak_bytes == said.requested_peak_bytes, name
            if ".fit(" not in proposal.code and "keras.callbacks." not in proposal.code:
                assert np.isfinite(model.train_on_batch(names["x"][:BATCH], names["y"][:BATCH])), name
        finally:
            keras.config.set_dtype_policy("float32")


def test_a_chunked_softmax_is_the_softmax():
    x, y = DATA[words]()
    keras.utils.set_random_seed(0)
    whole = words({})
    before = whole.get_weights()
    expected = whole.train_on_batch(x, y)
    made = estimate(lambda: words({}))
    proposal = next(one for one in Workshop(made.origin, made).proposals() if one.name == "chunked_softmax")
    chunked = pasted(proposal, words)["chunked"]
    chunked.set_weights(before)
    assert chunked.train_on_batch(x, y) == pytest.approx(expected, rel=1e-5)
    for ours, theirs in zip(chunked.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
