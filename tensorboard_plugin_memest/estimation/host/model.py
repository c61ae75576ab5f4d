"""From a data pipeline to a `HostEstimate`: read, walk, sum up, and try what would need less."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import metadata
from typing import Any

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.host.arrays import (
    WrongDataError,
    array_stages,
    is_list_of_numbers,
    list_stage,
    py_dataset_stages,
)
from tensorboard_plugin_memest.estimation.host.flow import UNKNOWN_ELEMENTS, Books
from tensorboard_plugin_memest.estimation.host.levers import array_levers, levers, queue_levers
from tensorboard_plugin_memest.estimation.host.pipeline import Op
from tensorboard_plugin_memest.estimation.host.read import read_dataset
from tensorboard_plugin_memest.estimation.host.rules import evaluate
from tensorboard_plugin_memest.estimation.host.sizes import pool_books_bytes
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.host import HostEstimate

_MOST_CALLS = 16


def estimate_dataset(
    dataset: Any,
    *,
    sample: bool | None = None,
    elements: int | None = None,
    batch_size: int = 32,
    validation_split: float = 0.0,
) -> HostEstimate:
    """Predicts how much host memory a data pipeline holds, stage by stage, without running it.

    Nothing is iterated or copied. What is predicted is the rise of the process's resident set while batches flow.

    Args:
        dataset: a `tf.data.Dataset`; or what else `fit` takes: arrays `x` or `(x, y)`, data frames, a
            `keras.utils.PyDataset`; or a list that `from_tensor_slices` takes.
        sample: look at one element where sizes are known no other way. That runs the pipeline up to there, once. None
            does so for a `PyDataset` only, whose first batch `fit` makes to look at it, too.
        elements: how many elements a source of unknown length gives; None: 1,000, told among the assumptions.
        batch_size: examples a batch, where `dataset` is arrays.
        validation_split: as for `fit`, where `dataset` is arrays.

    Returns:
        The HostEstimate, in bytes.

    Raises:
        TypeError: `dataset` is nothing that `fit` takes.
        ValueError: an argument is out of range.
    """
    if elements is not None and elements < 0:
        raise UsageError(f"elements is a number of elements, not {elements!r}.")
    if batch_size < 1:
        raise UsageError(f"batch_size is at least 1, not {batch_size!r}.")
    if not 0 <= validation_split < 1:
        raise UsageError(f"validation_split is a fraction from 0 to below 1, not {validation_split!r}.")
    books = Books(_calls(), unknown_elements=UNKNOWN_ELEMENTS if elements is None else elements)
    if isinstance(dataset, tf.data.Dataset):
        books.rewritten = _is_rewritten(dataset)
        books.cores = _calls(dataset)
        op = read_dataset(dataset, bool(sample))
        made = estimate_op(op, books)
        return replace(made, levers=levers(op, made, books, estimate_op))
    if isinstance(dataset, keras.utils.PyDataset):
        py_dataset_stages(dataset, sample is not False, books)
        made = _estimate(books)
        return replace(made, levers=queue_levers(made, dataset.workers))
    if is_list_of_numbers(dataset):
        books.stages.append(list_stage(dataset))
        return _estimate(books)
    if dataset is None or isinstance(dataset, (str, bytes, int, float)) or hasattr(dataset, "__next__"):
        raise WrongDataError(
            "estimate_dataset takes a tf.data.Dataset, arrays such as (x, y), or a keras.utils.PyDataset, "
            f"not {dataset!r}. "
            "A Python generator has no size; wrap it with tf.data.Dataset.from_generator."
        )
    extra = array_stages(dataset, batch_size, validation_split, books)
    made = _estimate(books, extra)
    return replace(made, levers=array_levers(made))


def estimate_op(op: Op, books: Books) -> HostEstimate:
    """The estimate of a pipeline that was read, or changed; without levers."""
    flow = evaluate(op, books)
    in_use = flow.own_bytes
    if in_use or flow.making:
        reason = "The element in use"
        if not flow.making:
            reason += "; the next is ready"
        elif flow.making > flow.own_bytes:
            reason += " and, while the next is made, that one and what it is made of"
        else:
            reason += " and the next"
        books.enter("in use", in_use + flow.making, 2 if flow.making else 1, flow, reason + ".")
    return _estimate(books)


def _estimate(books: Books, startup: int = 0) -> HostEstimate:
    stages = tuple(books.stages)
    versions = {name: metadata.version(name) for name in ("keras",)}
    versions["tensorflow"] = tf.__version__
    return HostEstimate(
        stages=stages,
        startup_bytes=sum(stage.bytes for stage in stages) + max(0, startup),
        slack_bytes=books.slack + pool_books_bytes(books.large),
        assumptions=tuple(books.notes),
        versions=versions,
    )


def _is_rewritten(dataset: tf.data.Dataset) -> bool:
    default = dataset.options().experimental_optimization.apply_default_optimizations
    return default is None or bool(default)


def _calls(dataset: tf.data.Dataset | None = None) -> int:
    """How many calls AUTOTUNE can run at once: threads of the pipeline's pool, as many as cores."""
    own = dataset.options().threading.private_threadpool_size if dataset is not None else None
    if own:
        return int(own)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_CALLS)
