"""What `fit` does with data that is no `tf.data.Dataset`: arrays, data frames, and `keras.utils.PyDataset`."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.host.flow import Books, Flow, fresh
from tensorboard_plugin_memest.estimation.host.rules import AUTOTUNED_PREFETCH
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.host import Stage
from tensorboard_plugin_memest.memory.units import format_bytes


class WrongDataError(TypeError):
    """What should be a data pipeline, or arrays for `fit`, is neither."""


_INDEX = 8  # bytes of an int64
# Keras makes the numbers of all examples, shuffles them into another tensor and has one more epoch's waiting.
_PERMUTATIONS = 3


def array_stages(data: Any, batch_size: int, validation_split: float, books: Books) -> int:
    """Enters what `fit(x, y)` on arrays keeps, and gives what it takes for a moment more at its start, in bytes.

    Keras makes tensors of the arrays (`ArrayDataAdapter`), whole, and gathers every batch from them. TensorFlow's
    conversion of a NumPy array copies it twice; the first copy goes when the next op runs.

    Raises:
        ValueError: the arrays have different lengths, or there are none.
        TypeError: something is no array.
    """
    leaves = [_Array(leaf) for leaf in tf.nest.flatten(data) if leaf is not None]
    if not leaves:
        raise UsageError(f"There are no arrays in {data!r}. Pass a tf.data.Dataset, (x, y) arrays or a PyDataset.")
    lengths = {leaf.rows for leaf in leaves}
    if len(lengths) > 1:
        raise UsageError(f"The arrays have different lengths: {', '.join(map(str, sorted(lengths)))}.")
    rows = lengths.pop()
    held = sum(leaf.tensor_bytes for leaf in leaves if leaf.copied)
    named = ", ".join(leaf.words for leaf in leaves)
    flow = Flow(rows, fresh([leaf.tensor_bytes // max(rows, 1) for leaf in leaves]), 0)
    trained = rows - round(rows * validation_split)
    reason = f"fit makes tensors of the arrays ({named}): a second copy of them, beside the caller's own."
    if validation_split:
        part = held * trained // max(rows, 1)
        books.enter("fit: training data", part, trained, flow, reason)
        books.enter(
            "fit: validation data", held - part, rows - trained, flow, "The same for the examples of validation_split."
        )
    else:
        books.enter("fit: data", held, rows, flow, reason)
    numbers = _PERMUTATIONS * _INDEX * trained
    books.enter(
        "fit: order", numbers, trained, Flow(rows, fresh([_INDEX]), 0), "The numbers of all examples, shuffled."
    )
    size = min(batch_size, max(trained, 1))
    batch = Flow(-(-trained // max(size, 1)), fresh([size * (leaf.tensor_bytes // max(rows, 1)) for leaf in leaves]), 0)
    count = min(books.cores + AUTOTUNED_PREFETCH + 1, batch.elements or 1)
    books.enter(
        "fit: batches",
        count * batch.own_bytes,
        count,
        batch,
        f"Batches of {size} gathered ahead by {books.cores} calls, those that wait, and the one in use; fewer, down "
        "to two, where tf.data sees no need.",
    )
    own = sum(leaf.own_bytes for leaf in leaves)
    books.note(f"The arrays themselves, {format_bytes(own)}, exist before and are not in these numbers.")
    # The copies that the conversion leaves behind, and the arrays that Keras casts to its float type before. There are
    # no batches yet.
    return held + sum(leaf.tensor_bytes for leaf in leaves if leaf.cast) - count * batch.own_bytes


def py_dataset_stages(data: keras.utils.PyDataset, sample: bool, books: Books) -> None:
    """Enters what `fit` on a `PyDataset` keeps: batches in its queue and those on their way into the model.

    Raises:
        ValueError: the size of a batch is not known because `sample` is False.
    """
    if not sample:
        raise UsageError(
            f"How large the batches of {type(data).__name__} are shows only when one is made. "
            "Leave sample=False out, and memest makes the first one to look at it."
        )
    leaves = [np.asarray(leaf) for leaf in tf.nest.flatten(data[0]) if leaf is not None]
    books.note(f"Every batch of {type(data).__name__} is taken for as large as its first.")
    flow = Flow(data.num_batches, fresh([leaf.nbytes for leaf in leaves]), 0)
    own = sum(leaf.nbytes for leaf in leaves)
    workers = data.workers
    if workers > 1 or (workers > 0 and data.use_multiprocessing):
        queued = data.max_queue_size
        if flow.elements is not None:
            queued = min(queued, flow.elements)
        kind = "processes" if data.use_multiprocessing else "threads"
        books.enter(
            "PyDataset: queue",
            queued * own,
            queued,
            flow,
            f"{workers} worker {kind} keep up to max_queue_size={queued} batches ready.",
        )
        if data.use_multiprocessing:
            books.note(
                "What the worker processes need for themselves comes on top: each holds what the PyDataset refers to."
            )
        ahead = 0
    else:
        ahead = AUTOTUNED_PREFETCH
    books.enter(
        "PyDataset: batches",
        own + (1 + ahead) * flow.own_bytes,
        2 + ahead,
        flow,
        "One batch as NumPy arrays, its tensors, and those that wait.",
    )


class _Array:
    """One array given to `fit`: what Keras makes of it."""

    def __init__(self, leaf: Any) -> None:
        dtype, shape = getattr(leaf, "dtype", None), getattr(leaf, "shape", None)
        # A data frame has a type for each column.
        self.frame = hasattr(leaf, "dtypes") and hasattr(leaf, "to_numpy") and dtype is None
        if self.frame:
            kinds = [np.dtype(one) for one in leaf.dtypes]
            dtype = np.result_type(*kinds)
            self.own_bytes = int(leaf.memory_usage(index=False).sum())
        elif isinstance(leaf, (list, tuple, int, float, str, bytes)) or dtype is None or shape is None:
            raise WrongDataError(
                f"fit takes arrays, data frames or datasets, not {type(leaf).__name__}: {str(leaf)[:60]!r}. "
                "Make an array of a list with numpy.array(...)."
            )
        shape = tuple(int(one) for one in shape or ())
        name = keras.backend.standardize_dtype(dtype)
        self.rows = shape[0] if shape else 1
        self.copied = not tf.is_tensor(leaf)
        self.cast = name.startswith(("float", "bfloat")) and name != keras.backend.floatx()
        final = keras.backend.floatx() if self.cast else name
        count = int(np.prod(shape, dtype=np.int64))
        size = tf.as_dtype(final).size if final != "string" else 24
        self.tensor_bytes = count * size
        if not self.frame:
            self.own_bytes = count * tf.as_dtype(name).size if name != "string" else count * size
        self.copied = self.copied or self.cast
        dimensions = " x ".join(map(str, shape))
        self.words = f"{dimensions} {name}" + (f" as {final}" if self.cast else "")


def is_list_of_numbers(data: Any) -> bool:
    """A Python list that `from_tensor_slices` takes and `fit` does not."""
    leaves = tf.nest.flatten(data) if isinstance(data, list) else []
    return bool(leaves) and all(isinstance(leaf, (int, float, str, bytes)) for leaf in leaves)


def list_stage(data: list[Any]) -> Stage:
    """What a tensor made of a list of numbers or texts, or of such lists, keeps.

    TensorFlow takes Python's floats for float32, its integers for int32.
    """
    leaves = tf.nest.flatten(data)
    texts = isinstance(leaves[0], (str, bytes))
    held = sum(24 + (len(one) + 17 if len(one) > 22 else 0) for one in leaves) if texts else 4 * len(leaves)
    return Stage(
        "from_tensor_slices",
        held,
        len(data),
        held // len(data),
        "The list becomes one tensor; the list itself stays too.",
    )
