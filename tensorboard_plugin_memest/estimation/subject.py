"""What is to be estimated: a model that can be, and the specs of the batch it is fed."""

from __future__ import annotations

import inspect
import operator
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.memory.errors import UsageError

FIT_DEFAULT_BATCH_SIZE = 32

# Losses whose targets are class numbers where the outputs have a score for each class.
_CLASS_NUMBERS = {
    "SparseCategoricalCrossentropy",
    "sparse_categorical_crossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "categorical_generalized_cross_entropy",
    "CTC",
    "ctc",
    "Circle",
    "circle",
}


@dataclass(frozen=True)
class Batch:
    """Specs of one batch: `x` and `y` as structures of `tf.TensorSpec`; `y` is None without targets."""

    x: Any
    y: Any

    def ways(self, model: keras.Model) -> list[Any]:
        """The batch as a dataset may yield it to `train_step`, likeliest first: as Keras packs it, tuples for lists.

        Without targets, a tuple is all inputs, or the whole batch with targets and weights in it: which of them is
        likelier, the number of the model's inputs tells where it has one.
        """
        x, y = _without_lists(self.x), _without_lists(self.y)
        if y is not None:
            return [(x, y)]
        if not isinstance(x, tuple):
            return [x]
        taken = getattr(model, "inputs", None)
        return [(x,), x] if not taken or len(taken) == len(keras.tree.flatten(x)) else [x, (x,)]


def require_tensorflow() -> None:
    """Raises ValueError if Keras does not run on TensorFlow in this process."""
    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            f"Keras runs on {keras.backend.backend()!r} in this process; memest estimates TensorFlow's training. Set "
            "KERAS_BACKEND=tensorflow before Keras is imported."
        )


class NoModelError(TypeError):
    """What should be a model, or a function that makes one, is neither."""


def checked_model(model: Any, source: str) -> keras.Model:
    """`model`, if it is a Keras model.

    Raises:
        NoModelError: it is none.
    """
    if not isinstance(model, keras.Model):
        raise NoModelError(
            f"{source} must be a keras.Model or a function without arguments that returns one, not {model!r} "
            f"of type {type(model).__name__}."
        )
    return model


def require_subject(model_or_build: Any, source: str) -> None:
    """Raises TypeError if `model_or_build` is neither a Keras model nor a function without arguments.

    Raises:
        NoModelError: as said; `source` says in words where it was passed.
    """
    # Layers, and models of Keras 2, can be called too, but not to make a model.
    if isinstance(model_or_build, (keras.layers.Layer, tf.Module)) or not callable(model_or_build):
        checked_model(model_or_build, source)
        return
    try:
        inspect.signature(model_or_build).bind()
    except TypeError as error:
        raise NoModelError(
            f"{source} is the function {model_or_build!r}, which cannot be called without arguments ({error}). Pass a "
            "function that can, such as lambda: make_model(...)."
        ) from None
    except ValueError:
        return  # it does not say what its arguments are


def require_one_device(model: keras.Model) -> None:
    """Raises ValueError if `model` was made for several devices, which this release does not estimate."""
    strategy = getattr(model, "_distribute_strategy", None)
    if strategy is not None:
        raise UsageError(
            f"The model {model.name!r} was made under {type(strategy).__name__}; this release of memest estimates one "
            "device. Pass a function that makes it outside the strategy's scope, and batch_size= of one replica: each "
            "replica holds its own copy of the variables."
        )


def require_built(model: keras.Model) -> None:
    """Raises ValueError, saying how to build it, if `model` has not been built."""
    if model.built:
        return
    name = type(model).__name__
    raise UsageError(
        f"The model {model.name!r} ({name}) is not built, so its variables do not exist and nothing can be "
        "estimated. Build it first: give it a keras.Input, call model.build(input_shape) such as "
        "model.build((None, 28, 28, 1)), or call it once on a batch. Or pass inputs=tf.TensorSpec(...), or a function "
        "that returns the model."
    )


def batch_size_of(model: keras.Model, batch_size: int | None, inputs: Any) -> tuple[int, list[str]]:
    """The batch size to estimate for, and what had to be assumed.

    Args:
        model: a Keras model.
        batch_size: as the caller gave it, or None.
        inputs: specs given by the caller, or None.

    Raises:
        ValueError: `batch_size` is not a positive integer, or contradicts the inputs' own fixed one.
    """
    own = f"the model {model.name!r}" if inputs is None else "inputs="
    fixed = fixed_batch_sizes(model, inputs)
    if batch_size is not None:
        wanted = positive_batch_size(batch_size)
        if fixed and wanted not in fixed:
            raise UsageError(
                f"batch_size={wanted}, but {own} fixes the batch at {min(fixed)}. Pass batch_size={min(fixed)}, or "
                "leave the batch dimension of the input open (None)."
            )
        return wanted, []
    if fixed:
        return min(fixed), [f"The batch size is the one that {own} fixes, {min(fixed)}."]
    return FIT_DEFAULT_BATCH_SIZE, [
        f"No batch size was given: {FIT_DEFAULT_BATCH_SIZE}, the default of model.fit, was assumed. Pass batch_size=."
    ]


def fixed_batch_sizes(model: keras.Model, inputs: Any) -> set[int]:
    """The only batch sizes that the model, or what the caller gave as its inputs, takes; empty if any will do."""
    given = _symbolic_inputs(model) if inputs is None else keras.tree.flatten(inputs)
    fixed = {shape[0] for shape in (tuple(spec.shape) for spec in given if hasattr(spec, "shape")) if shape}
    return set() if None in fixed else {int(size) for size in fixed}


def layer_classes(model: keras.Model) -> dict[str, type]:
    """The classes of a model's layers, for `custom_object_scope`.

    With them it can be made again although the user never registered a class for saving: the model is made of them.
    """
    return {type(layer).__name__: type(layer) for layer in model._flatten_layers()}


def positive_batch_size(batch_size: Any, called: str = "batch_size") -> int:
    """`batch_size` as an integer.

    Args:
        batch_size: as the caller gave it.
        called: the argument that it was.

    Raises:
        ValueError: it is no positive integer.
    """
    try:
        number = 0 if isinstance(batch_size, bool) else operator.index(batch_size)
    except TypeError:
        number = 0
    if number < 1:
        raise UsageError(f"{called} must be a positive integer, not {batch_size!r}.")
    return number


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
        return _map(lambda spec: _concrete(spec, batch_size, "inputs"), _checked(inputs, "inputs"))
    if _symbolic_inputs(model):
        return _map(lambda tensor: _concrete(tensor, batch_size, "inputs"), _input_structure(model))
    shapes = getattr(model, "_build_shapes_dict", None) or {}
    shape = next(iter(shapes.values())) if len(shapes) == 1 else None
    if shape is None:
        raise UsageError(
            f"The model {model.name!r} ({type(model).__name__}) does not say what its inputs are. Pass inputs= as "
            "the model takes them, for example inputs=tf.TensorSpec((None, 28, 28, 1), 'float32')."
        )

    def spec_of(built_with: Any) -> tf.TensorSpec:
        # The size of the batch that the model happened to be built with says nothing.
        return _concrete(tf.TensorSpec((None, *built_with[1:]), model.input_dtype), batch_size, "inputs")

    return keras.tree.map_shape_structure(spec_of, shape)


def target_specs(outputs: Any, loss: Any, names: list[str] | None = None) -> tuple[Any, list[str]]:
    """Specs of the targets of one batch as they follow from the loss and the outputs, and what had to be assumed.

    Args:
        outputs: specs of the model's outputs.
        loss: the loss as `compile` takes it; None for a step without targets.
        names: the outputs' names, where the model has them, in the order of its outputs.
    """
    if loss is None:
        return None, []
    flat = keras.tree.flatten(outputs)
    losses = _flat_losses(outputs, loss, names)
    if losses is None:
        return (
            _map(lambda output: _target(output, None), outputs),
            ["The targets were assumed to have the outputs' shapes and dtypes. Pass targets= if they differ."],
        )
    guessed = {_loss_name(one): None for one in losses if one is not None and not _is_known(one)}
    notes = [
        f"The targets of the loss {name!r} were assumed to have the outputs' shape and dtype. Pass targets= if they "
        "differ."
        for name in guessed
    ]
    if None in losses:
        # Keras takes such targets whatever else it takes, and some metrics want them.
        notes.append(
            "Outputs without a loss were assumed to have targets of their shape. Pass targets= if they have none."
        )
    specs = [_target(output, one) for output, one in zip(flat, losses, strict=True)]
    return keras.tree.pack_sequence_as(outputs, specs), notes


def given_target_specs(targets: Any, batch_size: int) -> Any:
    """Specs of the targets of one batch as the caller gave them; None for an empty structure.

    Raises:
        ValueError: they are no specs, or a dimension beside the batch is unknown.
    """
    if targets == () or targets == []:
        return None
    return _map(lambda spec: _concrete(spec, batch_size, "targets"), _checked(targets, "targets"))


def _flat_losses(outputs: Any, loss: Any, names: list[str] | None) -> list[Any] | None:
    """The loss of each output; None where they do not match in a way that is understood."""
    count = len(keras.tree.flatten(outputs))
    if isinstance(loss, dict):
        order = _keys(outputs) if isinstance(outputs, dict) else names or []
        if len(order) != count or not set(loss) <= set(order):
            return None
        return [loss.get(name) for name in order]
    if isinstance(loss, (list, tuple)):
        losses = keras.tree.flatten(loss)
        return losses if len(losses) == count else None
    return [loss] * count


def _keys(outputs: dict[str, Any]) -> list[str]:
    """The keys of a flat dict in the order in which Keras flattens it."""
    return list(keras.tree.flatten({key: key for key in outputs}))


def _target(output: Any, loss: Any) -> tf.TensorSpec:
    shape = list(output.shape)
    if any(kind in _CLASS_NUMBERS for kind in _kinds(loss)):
        axis = getattr(loss, "_fn_kwargs", {}).get("axis", -1)
        del shape[axis]
        return tf.TensorSpec(shape, "int64")
    dtype = keras.backend.standardize_dtype(output.dtype)
    # Data is not fed in the precision that a model computes in: Keras casts arrays to its default one.
    return tf.TensorSpec(shape, keras.config.floatx() if "float" in dtype else dtype)


def _loss_name(loss: Any) -> str:
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)


def _kinds(loss: Any) -> list[str]:
    """The names of a loss and, for an object, of the classes it derives from."""
    try:
        found = keras.losses.get(loss)
    except ValueError:
        return []
    if isinstance(found, keras.losses.Loss):
        return [base.__name__ for base in type(found).__mro__]
    return [getattr(found, "__name__", "")]


def _is_known(loss: Any) -> bool:
    """Whether it is certain what the targets of `loss` look like."""
    try:
        found = keras.losses.get(loss)
    except ValueError:
        return False  # "crossentropy", whose meaning depends on the targets
    made_by = type(found) if isinstance(found, keras.losses.Loss) else found
    return str(getattr(made_by, "__module__", "")).startswith("keras.")


def _symbolic_inputs(model: keras.Model) -> list[Any]:
    try:
        return list(model.inputs or [])
    except (AttributeError, TypeError, ValueError):
        return []


def _input_structure(model: keras.Model) -> Any:
    # A functional model may take a dict or a nest of inputs; a sequential one takes its only input.
    inputs = _symbolic_inputs(model)
    return getattr(model, "_inputs_struct", inputs[0] if len(inputs) == 1 else inputs)


def _checked(given: Any, argument: str) -> Any:
    """`given`, if it is a structure of things with a shape and a dtype."""
    flat = keras.tree.flatten(given)
    for spec in flat or [given]:
        if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
            raise UsageError(
                f"{argument}= takes tf.TensorSpecs in the structure of the data, such as "
                f"{argument}=tf.TensorSpec((None, 28, 28, 1), 'float32') or a list, tuple or dict of them, not "
                f"{spec!r} in {given!r}."
            )
    return given


def _concrete(spec: Any, batch_size: int, argument: str) -> tf.TensorSpec:
    name = getattr(spec, "name", None)
    called = f"The tensor {name!r} of the {argument}" if name else f"A tensor of the {argument}"
    if isinstance(spec, (tf.SparseTensorSpec, tf.RaggedTensorSpec)) or getattr(spec, "sparse", False):
        raise UsageError(
            f"{called} is sparse or ragged ({spec!r}), so its size is not known before the run. Estimate with a dense "
            f"one of the largest size you train with: {argument}=tf.TensorSpec(...)."
        )
    try:
        shape = list(spec.shape)
    except ValueError:
        shape = [None, None]  # a tensor of unknown rank
    if shape and shape[0] is None:
        shape[0] = batch_size
    if any(size is None for size in shape):
        raise UsageError(
            f"{called} has the shape {spec.shape}, with a size that is not known before the run. "
            f"Pass {argument}=tf.TensorSpec(...) with the largest size you train with."
        )
    return tf.TensorSpec(shape, keras.backend.standardize_dtype(spec.dtype), name=name)


def _map(function: Any, structure: Any) -> Any:
    return keras.tree.map_structure(function, structure)


def _without_lists(structure: Any) -> Any:
    """Datasets take a list for one tensor to be stacked, so Keras turns lists into tuples."""
    return keras.tree.lists_to_tuples(structure)
