"""Changes where a vocabulary is what takes the memory: tables of words, and scores of every word for every place."""

from __future__ import annotations

import math
from collections.abc import Iterator

import keras

from tensorboard_plugin_memest.advise.blueprint import Blueprint, Part
from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.advise.chunked import ChunkedSoftmax, with_chunked_softmax
from tensorboard_plugin_memest.advise.proposal import WORTH_CHANGING, Proposal
from tensorboard_plugin_memest.advise.remake import compiled_like, in_a_row, with_layers_replaced
from tensorboard_plugin_memest.advise.sampled import SampledSoftmax, with_sampled_softmax
from tensorboard_plugin_memest.advise.written import compiling, source_of, written
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate

# Fewer classes than this nobody samples from.
MANY_CLASSES = 2000


def vocabulary(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    """What can be changed about large tables, and about a last layer of many classes."""
    for part in blueprint.parts:
        if part.class_name == "Embedding" and part.parameters >= WORTH_CHANGING * blueprint.parameters:
            yield from _embedding(part)
    yield from _scores(blueprint, estimate)


def _scores(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    """Losses that never have the scores of all classes at all places at once."""
    head = blueprint.parts[-1]
    if head.class_name == "Activation" and len(blueprint.parts) > 1 and head.name in blueprint.parts[-2].feeds:
        head = blueprint.parts[-2]
    class_name, config = head.unwrapped()
    classes, shape = config.get("units", 0), head.input_shape
    if class_name != "Dense" or classes < MANY_CLASSES or shape is None:
        return
    held = sum(
        size
        for layer in estimate.layers
        if head.name in layer.path.split("/") or layer.path.startswith("(")
        for category, size in layer.bytes_per_category.items()
        if category is not Category.OPTIMIZER_SLOTS
    )
    if max(held, 8 * head.parameters) < WORTH_CHANGING * estimate.peak_bytes:
        return
    loss = blueprint.loss.lower().replace("_", "")
    if loss.startswith("categoricalcrossentropy"):
        yield _sparse_labels(classes)
    if not loss.startswith("sparsecategoricalcrossentropy"):
        return
    if config.get("activation") in ("softmax", "linear"):
        yield from _chunked_softmax(head, math.prod(one or 1 for one in shape[1:-1]), estimate.subject.batch_size)
    if config.get("use_bias", True):
        yield _sampled_softmax(head, classes)


def _sparse_labels(classes: int) -> Proposal:
    return Proposal(
        "sparse_labels",
        "labels",
        f"Labels as numbers instead of {classes:,} zeros and ones each",
        Change(edits=(lambda model: compiled_like(model, model, loss="sparse_categorical_crossentropy"),)),
        "The same loss. The data gets smaller, too: one number for each label.",
        f"y = y.argmax(axis=-1)\n{compiling(loss=repr('sparse_categorical_crossentropy'))}",
        0,
    )


def _chunked_softmax(head: Part, places: int, batch_size: int) -> Iterator[Proposal]:
    chunks = next((count for count in (16, 8, 4, 2) if places * batch_size % count == 0), None)
    if chunks is None:
        return
    full = "" if places % chunks == 0 else f" Every batch has to be full (drop_remainder=True), to be cut in {chunks}."
    yield Proposal(
        "chunked_softmax",
        "loss",
        f"The softmax in {chunks} chunks of a batch, made again in the backward pass",
        Change(edits=(lambda model: with_chunked_softmax(model, head.number, chunks),)),
        "The same loss; the last layer is computed twice. Metrics need all scores and have to go; sample weights are "
        f"left out.{full}",
        f"{source_of(ChunkedSoftmax)}\n\n"
        f"head = model.layers[{head.number}]  # {head.name}\n"
        "chunked = ChunkedSoftmax(model.input, head.input)\n"
        f"chunked.head, chunked.chunks = head, {chunks}\n"
        f"{compiling('chunked')}\n"
        "# predict with keras.Model(chunked.input, head(chunked.output))",
        0,
    )


def _sampled_softmax(head: Part, classes: int) -> Proposal:
    samples = max(64, classes // 100)
    return Proposal(
        "sampled_softmax",
        "loss",
        f"Sampled softmax: the loss of {samples} of {classes:,} classes a step",
        Change(edits=(lambda model: with_sampled_softmax(model, head.number, samples),)),
        "The loss is an estimate with noise, and metrics need all scores; predict with the whole table.",
        f"{source_of(SampledSoftmax)}\n\n"
        f"head = model.layers[{head.number}]  # {head.name}\n"
        "sampled = SampledSoftmax(model.input, head.input)\n"
        f"sampled.set_classes({classes}, head.input.shape[-1], samples={samples})\n"
        f"{compiling('sampled')}\n"
        "# predict with keras.ops.matmul(sampled.predict(x), sampled.table.T) + sampled.bias",
        2,
    )


def _embedding(table: Part) -> Iterator[Proposal]:
    words, size = table.config.get("input_dim", 0), table.config.get("output_dim", 0)
    inner = max(4, size // 8)
    if inner < size:

        def factorize(model: keras.Model) -> keras.Model:
            def replacement(layer: keras.layers.Layer) -> keras.layers.Layer:
                config = {**layer.get_config(), "output_dim": inner, "name": f"{layer.name}_inner"}
                return in_a_row(layer.name, type(layer).from_config(config), keras.layers.Dense(size, use_bias=False))

            return with_layers_replaced(model, [table.number], replacement)

        yield Proposal(
            "factorized_embedding",
            "embedding",
            f"Embedding {table.name} factorized: {inner} numbers a word, then a Dense to {size}",
            Change(edits=(factorize,)),
            "Another model, as in ALBERT: words share directions; it has to be trained anew.",
            f"{written(table.class_name, table.config, output_dim=inner)}\nlayers.Dense({size}, use_bias=False)",
            2,
        )

    fewer = max(1, words // 4)

    def hash_words(model: keras.Model) -> keras.Model:
        def replacement(layer: keras.layers.Layer) -> keras.layers.Layer:
            return type(layer).from_config({**layer.get_config(), "input_dim": fewer})

        return with_layers_replaced(model, [table.number], replacement)

    yield Proposal(
        "smaller_vocabulary",
        "embedding",
        f"Embedding {table.name} for a quarter of the words, {fewer:,}",
        Change(edits=(hash_words,)),
        "Rare words share a row (hash them, or map them to one unknown word).",
        f"x = x % {fewer}  # in the data\n{written(table.class_name, table.config, input_dim=fewer)}",
        2,
    )
