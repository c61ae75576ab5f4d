"""Changes where a vocabulary is what takes the memory: tables of words, and scores of every word for every place."""

from __future__ import annotations

from collections.abc import Iterator

import keras

from tensorboard_plugin_memest.advise.blueprint import Blueprint, Part
from tensorboard_plugin_memest.advise.change import Change
from tensorboard_plugin_memest.advise.proposal import WORTH_CHANGING, Proposal
from tensorboard_plugin_memest.advise.remake import in_a_row, with_layer_replaced
from tensorboard_plugin_memest.advise.sampled import with_sampled_softmax
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate

# Fewer classes than this nobody samples from.
MANY_CLASSES = 2000


def vocabulary(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    """What can be changed about large tables, and about a last layer of many classes."""
    for part in blueprint.parts:
        if part.class_name == "Embedding" and part.parameters >= WORTH_CHANGING * blueprint.parameters:
            yield from _embedding(part)
    yield from _sampled_softmax(blueprint, estimate)


def _sampled_softmax(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    last = blueprint.parts[-1]
    if last.class_name == "Activation" and len(blueprint.parts) > 1 and last.name in blueprint.parts[-2].feeds:
        last = blueprint.parts[-2]
    units = last.config.get("units", 0)
    is_sparse = blueprint.loss.lower().replace("_", "").startswith("sparsecategoricalcrossentropy")
    if last.class_name != "Dense" or units < MANY_CLASSES or not is_sparse or not last.config.get("use_bias", True):
        return
    scores = sum(
        size
        for layer in estimate.layers
        if layer.path.rpartition("/")[2] == last.name or layer.path.startswith("(")
        for category, size in layer.bytes_per_category.items()
        if category is not Category.OPTIMIZER_SLOTS
    )
    if max(scores, 8 * last.parameters) < WORTH_CHANGING * estimate.peak_bytes:
        return
    samples = max(64, units // 100)
    yield Proposal(
        "sampled_softmax",
        "loss",
        f"Sampled softmax: the loss of {samples} of {units:,} classes a step",
        Change(edits=(lambda model: with_sampled_softmax(model, last.number, samples),)),
        "The loss is an estimate with noise, and metrics need all scores; predict as before, with the whole layer.",
        "class Sampled(keras.Model):  # ends before the last Dense, whose weights are self.table and self.bias\n"
        "    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):\n"
        "        labels = tf.reshape(y, [-1, 1])\n"
        "        inputs = tf.reshape(y_pred, [-1, y_pred.shape[-1]])\n"
        "        return tf.reduce_mean(tf.nn.sampled_softmax_loss(\n"
        f"            self.table, self.bias, labels, inputs, num_sampled={samples}, num_classes={units}))",
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

            return with_layer_replaced(model, table.number, replacement)

        yield Proposal(
            "factorized_embedding",
            "embedding",
            f"Embedding {table.name} factorized: {inner} numbers a word, then a Dense to {size}",
            Change(edits=(factorize,)),
            "Another model, as in ALBERT: words share directions; it has to be trained anew.",
            f"layers.Embedding({words}, {inner})\nlayers.Dense({size}, use_bias=False)",
            2,
        )

    def hash_words(model: keras.Model) -> keras.Model:
        def replacement(layer: keras.layers.Layer) -> keras.layers.Layer:
            return type(layer).from_config({**layer.get_config(), "input_dim": max(1, words // 4)})

        return with_layer_replaced(model, table.number, replacement)

    yield Proposal(
        "smaller_vocabulary",
        "embedding",
        f"Embedding {table.name} for a quarter of the words, {words // 4:,}",
        Change(edits=(hash_words,)),
        "Rare words share a row (hash them, or map them to one unknown word).",
        f"layers.Hashing({words // 4}), then layers.Embedding({words // 4}, {size})",
        2,
    )
