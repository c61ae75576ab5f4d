"""What is to be estimated: the model, ready to be traced, and the batch it is fed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.memory.errors import UsageError

FIT_DEFAULT_BATCH_SIZE = 32


@dataclass(frozen=True)
class Batch:
    """Specs of one batch: `x` and `y` as the model's structures of `tf.TensorSpec`; `y` is None without targets."""

    x: Any
    y: Any

    @property
    def data(self) -> tuple[Any, ...]:
        """The batch as a dataset yields it to `train_step`."""
        return (self.x,) if self.y is None else (self.x, self.y)


def checked_model(model: Any, source: str) -> keras.Model:
    """`model`, if it is a built Keras model.

    Raises:
        TypeError: it is no Keras model.
        ValueError: it has not been built.
    """
    if not isinstance(model, keras.Model):
        raise TypeError(
            f"{source} must be a keras.Model or a function without arguments that returns one, not {model!r} "
            f"of type {type(model).__name__}."
        )
    return model


def require_built(model: keras.Model) -> None:
    """Raises ValueError, saying how to build it, if `model` or a layer of it has no variables yet."""
    if model.built:
        return
    name = type(model).__name__
    raise UsageError(
        f"The model {model.name!r} ({name}) is not built, so its variables do not exist and nothing can be "
        "estimated. Build it first: give it a keras.Input, call model.build(input_shape) such as "
        "model.build((None, 28, 28, 1)), or call it once on a batch. Or pass inputs=tf.TensorSpec(...), or a function "
        "that returns the model."
    )


def batch_size_of(model: keras.Model, batch_size: int | None) -> tuple[int, str | None]:
    """The batch size to estimate for, and the assumption behind it if one had to be made.

    Raises:
        ValueError: `batch_size` is not a positive integer.
    """
    if batch_size is not None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise UsageError(f"batch_size must be a positive integer, not {batch_size!r}.")
        return batch_size, None
    for tensor in _symbolic_inputs(model):
        if tensor.shape and tensor.shape[0] is not None:
            return int(tensor.shape[0]), f"The batch size is the model's own fixed one, {tensor.shape[0]}."
    return FIT_DEFAULT_BATCH_SIZE, (
        f"No batch size was given: {FIT_DEFAULT_BATCH_SIZE}, the default of model.fit, was assumed. Pass batch_size=."
    )


def input_specs(model: keras.Model, batch_size: int, inputs: Any) -> Any:
    """Specs of the model's inputs for one batch, in the structure the model takes.

    Args:
        model: a Keras model.
        batch_size: examples in the batch.
        inputs: specs given by the caller, or None to take them from the model; a batch dimension of None becomes
            `batch_size`.

    Raises:
        ValueError: the model does not say what its inputs are, or a dimension beside the batch is unknown.
    """
    if inputs is not None:
        return keras.tree.map_structure(lambda spec: _concrete(spec, batch_size, "inputs"), inputs)
    if not _symbolic_inputs(model):
        shapes = getattr(model, "_build_shapes_dict", None)
        shape = next(iter(shapes.values())) if shapes and len(shapes) == 1 else None
        if not _is_shape(shape):
            raise UsageError(
                f"The model {model.name!r} ({type(model).__name__}) does not say what its inputs are. Pass inputs= as "
                "the model takes them, for example inputs=tf.TensorSpec((None, 28, 28, 1), 'float32')."
            )
        return _concrete(tf.TensorSpec(shape, model.input_dtype), batch_size, "inputs")
    return keras.tree.map_structure(lambda tensor: _concrete(tensor, batch_size, "input"), _input_structure(model))


def target_specs(outputs: Any, loss: Any, targets: Any, batch_size: int) -> tuple[Any, str | None]:
    """Specs of the targets of one batch, and the assumption behind them if one had to be made.

    Args:
        outputs: specs of the model's outputs.
        loss: the loss as `compile` takes it.
        targets: specs given by the caller, or None to infer them from `loss` and `outputs`.
        batch_size: examples in the batch.

    Raises:
        ValueError: a dimension of `targets` beside the batch is unknown.
    """
    if targets is not None:
        return keras.tree.map_structure(lambda spec: _concrete(spec, batch_size, "targets"), targets), None
    if loss is None:
        return None, None
    per_output = _losses_per_output(outputs, loss)
    if per_output is None:
        return (
            keras.tree.map_structure(lambda output: _target(output, None), outputs),
            "The targets were assumed to have the outputs' shapes and dtypes. Pass targets= if they differ.",
        )
    specs = keras.tree.map_structure_up_to(outputs, _target, outputs, per_output)
    unknown = [
        _loss_name(one) for one in keras.tree.flatten(per_output) if one is not None and not _is_builtin_loss(one)
    ]
    note = (
        f"The targets of the loss {unknown[0]!r} were assumed to have the outputs' shape and dtype. "
        "Pass targets= if they differ."
        if unknown
        else None
    )
    return specs, note


def _losses_per_output(outputs: Any, loss: Any) -> Any:
    """`loss` in the structure of `outputs`; None where they do not match in a way that is understood."""
    if isinstance(loss, (str, keras.losses.Loss)) or callable(loss):
        return keras.tree.map_structure(lambda _: loss, outputs)
    if isinstance(outputs, dict) and isinstance(loss, dict):
        return {name: loss.get(name) for name in outputs}
    if isinstance(outputs, (list, tuple)) and isinstance(loss, (list, tuple)) and len(outputs) == len(loss):
        return type(outputs)(loss)
    return None


def _target(output: Any, loss: Any) -> tf.TensorSpec:
    name = _loss_name(loss)
    if name.startswith("sparse_categorical") or name == "SparseCategoricalCrossentropy":
        return tf.TensorSpec(output.shape[:-1], "int64")
    return tf.TensorSpec(output.shape, keras.backend.standardize_dtype(output.dtype))


def _loss_name(loss: Any) -> str:
    if isinstance(loss, str):
        return loss
    if isinstance(loss, keras.losses.Loss):
        return type(loss).__name__
    return getattr(loss, "__name__", type(loss).__name__)


def _is_builtin_loss(loss: Any) -> bool:
    try:
        found = keras.losses.get(loss)
    except ValueError:
        return False
    made_by = found if hasattr(found, "__qualname__") else type(found)
    return str(made_by.__module__).startswith("keras.")


def _symbolic_inputs(model: keras.Model) -> list[Any]:
    try:
        return list(model.inputs or [])
    except (AttributeError, ValueError):
        return []


def _input_structure(model: keras.Model) -> Any:
    # A functional model may take a dict or a nest of inputs; a sequential one takes its only input.
    inputs = _symbolic_inputs(model)
    return getattr(model, "_inputs_struct", inputs[0] if len(inputs) == 1 else inputs)


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, (tuple, list)) and all(size is None or isinstance(size, int) for size in shape)


def _concrete(spec: Any, batch_size: int, what: str) -> tf.TensorSpec:
    shape = list(spec.shape)
    if shape and shape[0] is None:
        shape[0] = batch_size
    if any(size is None for size in shape):
        name = getattr(spec, "name", None)
        raise UsageError(
            f"The {what} {name or ''} has the shape {tuple(spec.shape)}, with a size that is not known before the run. "
            f"Pass inputs=tf.TensorSpec(...) with the largest size you train with."
        )
    return tf.TensorSpec(shape, keras.backend.standardize_dtype(spec.dtype), name=getattr(spec, "name", None))
