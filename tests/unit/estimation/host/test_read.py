"""Reading a dataset: its Python objects and its serialized graph say the same."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.host.flow import Books
from tensorboard_plugin_memest.estimation.host.model import estimate_op
from tensorboard_plugin_memest.estimation.host.read import read_dataset

Dataset = tf.data.Dataset


def images(count: int = 20) -> Dataset:
    return Dataset.range(count).map(lambda one: tf.zeros((50,)) + tf.cast(one, tf.float32))


PIPELINES = {
    "cache and shuffle": lambda: images().cache().shuffle(100).batch(4).prefetch(2),
    "slices": lambda: Dataset.from_tensor_slices((np.ones((9, 7), np.float32), np.arange(9))).shuffle(5).batch(2),
    "texts": lambda: Dataset.from_tensor_slices(["short", "long" * 20]).cache(),
    "tensors": lambda: Dataset.from_tensors(np.ones((9, 7))).repeat(3).shuffle(2),
    "parallel map": lambda: Dataset.range(9).map(lambda one: tf.zeros((99,)), num_parallel_calls=3),
    "interleave": lambda: Dataset.range(6).interleave(
        lambda one: Dataset.from_tensors(one).repeat(3).cache(), cycle_length=2, num_parallel_calls=2
    ),
    "windows": lambda: images().window(5, shift=1).flat_map(lambda window: window.batch(5)),
    "zip": lambda: Dataset.zip((images().cache(), images(7))).concatenate(Dataset.zip((images(), images()))),
    "sample": lambda: Dataset.sample_from_datasets([images().shuffle(9), images(5).shuffle(3)]),
    "some": lambda: images().skip(2).shard(3, 1).take(4).shuffle(50),
    "padded": lambda: images().padded_batch(3, padded_shapes=(80,)).unbatch(),
    "filter": lambda: images().filter(lambda one: one[0] > 2).repeat().shuffle(11),
    "generator": lambda: Dataset.from_generator(lambda: iter([1.0]), output_signature=tf.TensorSpec((), tf.float32)),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_serialized_graph_gives_the_same_estimate(name):
    dataset = PIPELINES[name]()
    opaque = tf.data.experimental.from_variant(tf.data.experimental.to_variant(dataset), dataset.element_spec)
    direct, serialized = (estimate_op(read_dataset(one), Books(2)) for one in (dataset, opaque))
    assert [(one.name, one.bytes, one.elements) for one in serialized.stages] == [
        (one.name, one.bytes, one.elements) for one in direct.stages
    ]


def test_arguments_have_the_names_that_tensorflow_gives_them():
    op = read_dataset(Dataset.range(3, 30, 2).window(5, 2, 3, True))
    assert (op.kind, op.number("size"), op.number("shift"), op.number("stride")) == ("Window", 5, 2, 3)
    assert op.values["drop_remainder"] is True
    assert (op.inputs[0].kind, op.inputs[0].number("stop")) == ("Range", 30)


def test_a_function_tells_which_inputs_it_hands_on():
    pairs = Dataset.zip((Dataset.range(3), Dataset.range(3)))
    assert read_dataset(pairs.map(lambda a, b: (b, a + 1, a))).body.passes == (1, None, 0)
