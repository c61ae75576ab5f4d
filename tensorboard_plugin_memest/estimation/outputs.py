"""What a model returns for a batch, found without running it."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.src import backend as keras_backend
from keras.src.models.functional import Functional


def output_specs(model: keras.Model, x: Any, batch_size: int) -> Any:
    """Specs of the outputs for a batch with inputs of the specs `x`; builds what is not built."""
    symbolic = keras.tree.map_structure(
        lambda spec: keras.KerasTensor(spec.shape, keras.backend.standardize_dtype(spec.dtype)), x
    )
    if _knows_shapes(model):
        # Each layer is asked, instead of tracing all of them once more.
        outputs = model.compute_output_spec(symbolic, training=False)
    else:
        outputs = keras_backend.compute_output_spec(model, symbolic, training=False)
    return keras.tree.map_structure(
        lambda output: tf.TensorSpec(
            [batch_size if size is None and axis == 0 else size for axis, size in enumerate(output.shape)], output.dtype
        ),
        outputs,
    )


def _knows_shapes(model: keras.Model) -> bool:
    """Whether a model is a graph of Keras' own layers, which say of themselves what they return."""
    return (
        type(model) in (Functional, keras.Sequential)
        and bool(model.built)
        and all(type(layer).__module__.startswith("keras.") for layer in model._flatten_layers())
    )
