"""What a model returns for a batch, found without running it."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.src import backend as keras_backend


def output_specs(model: keras.Model, x: Any, batch_size: int) -> Any:
    """Specs of the outputs for a batch with inputs of the specs `x`; builds what is not built."""
    symbolic = keras.tree.map_structure(
        lambda spec: keras.KerasTensor(spec.shape, keras.backend.standardize_dtype(spec.dtype)), x
    )
    outputs = keras_backend.compute_output_spec(model, symbolic, training=False)
    return keras.tree.map_structure(
        lambda output: tf.TensorSpec(
            [batch_size if size is None and axis == 0 else size for axis, size in enumerate(output.shape)], output.dtype
        ),
        outputs,
    )
