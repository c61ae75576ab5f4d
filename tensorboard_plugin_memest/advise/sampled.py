"""A model trained with a sampled softmax: scores of a few classes a step instead of all.

Jean, Cho, Memisevic, Bengio: On Using Very Large Target Vocabulary for Neural Machine Translation, 2015.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.advise.remake import compiled_like


class SampledSoftmax(keras.Model):  # type: ignore[misc]
    """Gives what the last layer of another model took, and has that layer's weights for the loss."""

    def set_classes(self, classes: int, width: int, samples: int) -> None:
        """Makes the weights of the last layer.

        Args:
            classes: how many there are.
            width: numbers that it took for each place.
            samples: classes a step.
        """
        self.classes, self.samples = classes, samples
        self.table = self.add_weight(shape=(classes, width), name="table")
        self.bias = self.add_weight(shape=(classes,), initializer="zeros", name="bias")

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The sampled loss, the mean over all places."""
        labels = tf.reshape(y, [-1, 1])
        inputs = tf.reshape(y_pred, [-1, y_pred.shape[-1]])
        table, bias = tf.convert_to_tensor(self.table), tf.convert_to_tensor(self.bias)
        inputs = tf.cast(inputs, table.dtype)
        losses = tf.nn.sampled_softmax_loss(table, bias, labels, inputs, self.samples, self.classes)
        return tf.reduce_mean(losses)


def with_sampled_softmax(model: keras.Model, number: int, samples: int) -> keras.Model:
    """A model like `model`, a functional or sequential one, whose loss samples classes.

    Args:
        model: built; it ends in a Dense layer for the classes.
        number: which of `model.layers` that is.
        samples: classes a step.
    """
    last = model.layers[number]
    before = last.input
    made = SampledSoftmax(model.input, before)
    made.set_classes(last.output.shape[-1], before.shape[-1], samples)
    return compiled_like(made, model)
