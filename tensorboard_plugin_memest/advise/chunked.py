"""A model trained with its whole softmax, but with the scores of a few places at a time.

What is made again in the backward pass need not be kept.

Chen, Xu, Zhang, Guestrin: Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.advise.remake import compiled_like


class ChunkedSoftmax(keras.Model):  # type: ignore[misc]
    """Gives what the last layer of another model took. That layer, `head`, serves the loss, in `chunks` of a batch."""

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The mean loss of all places."""
        # As tensors, for TensorFlow has no gradient for a variable that a loop computes with twice.
        weights = [tf.convert_to_tensor(weight) for weight in self.head.trainable_weights]

        def losses(chunk: tuple[Any, Any]) -> Any:
            features, labels = chunk

            @tf.recompute_grad  # type: ignore[untyped-decorator]
            def scored(features: Any, kernel: Any, *bias: Any) -> Any:
                scores = tf.matmul(features, tf.cast(kernel, features.dtype))
                for one in bias:
                    scores += tf.cast(one, scores.dtype)
                return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(scores, tf.float32))

            return scored(features, *weights)

        chunks = tf.reshape(y_pred, [self.chunks, -1, y_pred.shape[-1]]), tf.reshape(y, [self.chunks, -1])
        return tf.reduce_mean(tf.map_fn(losses, chunks, fn_output_signature=tf.float32, parallel_iterations=1))


def with_chunked_softmax(model: keras.Model, number: int, chunks: int) -> keras.Model:
    """A model like `model`, a functional or sequential one, whose loss is computed in chunks.

    Args:
        model: built; it ends in a Dense layer for the classes.
        number: which of `model.layers` that is.
        chunks: into how many parts of one size a batch's places are divided.
    """
    head = model.layers[number]
    made = ChunkedSoftmax(model.input, head.input)
    made.head, made.chunks = head, chunks
    return compiled_like(made, model)
