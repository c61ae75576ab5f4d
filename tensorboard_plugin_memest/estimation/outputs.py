"""What a model returns for a batch, found without running it."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.src import backend as keras_backend

from tensorboard_plugin_memest.estimation.eager_step import returned_eagerly


def output_specs(model: keras.Model, x: Any, batch_size: int) -> Any:
    """Specs of the outputs for a batch with inputs of the specs `x`; builds what is not built."""
    symbolic = keras.tree.map_structure(
        lambda spec: keras.KerasTensor(spec.shape, keras.backend.standardize_dtype(spec.dtype)), x
    )
    try:
        outputs = keras_backend.compute_output_spec(model, symbolic, training=False)
    except Exception as error:
        try:
            # Where it runs eagerly, its Python code may ask for values.
            outputs = returned_eagerly(model, [x])
        except Exception:
            raise error from None
    return keras.tree.map_structure(
        lambda output: tf.TensorSpec(
            [batch_size if size is None and axis == 0 else size for axis, size in enumerate(output.shape)], output.dtype
        ),
        outputs,
    )
