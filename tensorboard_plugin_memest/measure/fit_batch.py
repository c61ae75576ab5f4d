"""What a running `fit` was given: the batch size and what a batch looks like. Keras does not tell its callbacks."""

from __future__ import annotations

import sys
from typing import Any

import keras
import tensorflow as tf


def batch_size_of_fit() -> int | None:
    """Examples a step of the `fit` that this is called from, in the same thread; None where it cannot be told.

    It is in the adapter of the data, a local variable of `fit`. For a data set whose batches have no fixed size,
    because the last may be smaller, it is what the data set's own `batch` was called with.
    """
    adapter = getattr(_local_of_fit("epoch_iterator"), "data_adapter", None)
    if adapter is None:
        return None
    try:
        size = adapter.batch_size
    except (NotImplementedError, AttributeError, IndexError, ValueError, TypeError):
        size = None
    return size if isinstance(size, int) else _batched_by(getattr(adapter, "_dataset", None))


def specs_of_fit() -> dict[str, Any]:
    """What a batch of the `fit` that this is called from looks like, in the same thread, as arguments of `estimate`.

    Its `inputs` and, if it has any, its `targets`; nothing where that cannot be told, as where several replicas share a
    batch.
    """
    spec = getattr(getattr(_local_of_fit("epoch_iterator"), "_distributed_dataset", None), "element_spec", None)
    if spec is None or not all(isinstance(one, tf.TensorSpec) for one in tf.nest.flatten(spec)):
        return {}
    x, y, _ = keras.utils.unpack_x_y_sample_weight(spec)
    return {"inputs": x} if y is None else {"inputs": x, "targets": y}


def _local_of_fit(name: str) -> Any:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "fit" and name in frame.f_code.co_varnames + frame.f_code.co_cellvars:
            return frame.f_locals.get(name)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _batched_by(dataset: Any) -> int | None:
    """The size that the last `batch` among the transformations of `dataset` made."""
    while dataset is not None:
        size = getattr(dataset, "_batch_size", None)
        if size is not None:
            value = tf.get_static_value(size) if tf.is_tensor(size) else size
            return int(value) if value is not None else None
        dataset = getattr(dataset, "_input_dataset", None)
    return None
