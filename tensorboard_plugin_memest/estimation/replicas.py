"""A model made under a `tf.distribute` strategy, taken for what it is on one replica.

Each replica holds a copy of every variable, takes an equal share of the batch, and does what one device would do alone;
only the gradients are summed over all of them before the update. TensorFlow does that (`CollectiveAllReduce` in
`tensorflow/python/distribute/cross_device_ops.py`) in one buffer that all gradients are copied into, and splits the sum
up again.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.framework import ops as tf_ops

from tensorboard_plugin_memest.estimation.optimizers import copied_optimizer
from tensorboard_plugin_memest.estimation.subject import layer_classes, require_built
from tensorboard_plugin_memest.memory.errors import UsageError

# The op that sums over replicas; its group and instance are told by numbers that decide nothing here.
ALL_REDUCE = "CollectiveReduceV2"

_METHOD = "_all_reduce_sum_gradients"


@dataclass(frozen=True)
class Replicas:
    """How a training is spread over devices.

    Attributes:
        strategy: class name of the strategy.
        count: replicas in sync, on all workers.
        here: how many of them are in this process.
    """

    strategy: str
    count: int
    here: int

    @property
    def workers(self) -> int:
        """Processes that train together."""
        return self.count // self.here

    def share(self, batch_size: int) -> int:
        """The largest part of a batch that one replica gets."""
        return -(-batch_size // self.count)

    def notes(self, batch_size: int, device: str) -> list[str]:
        """What is to be known about an estimate for a batch of that size, shared out, on devices of the kind."""
        share = self.share(batch_size)
        found = [
            f"{self.strategy} with {self.count} replica{'s' * (self.count != 1)}: all numbers are of one of them, "
            f"which holds a copy of every variable and gets {share} of the {batch_size} examples of a batch."
        ]
        if self.count > 1:
            found.append(
                "The gradients are summed over the replicas in one buffer of all of them, which is split up again for "
                "the update; both copies were counted."
            )
        if self.workers > 1:
            found.append(
                "The slots were taken to be created in the first call of the function that trains; the first worker "
                "then sends their first values to the others, and the copies were counted. The others need less "
                "there, which the range includes."
            )
        if device == "CPU" and self.here > 1:
            found.append(
                f"The {self.here} replicas of this process share one allocator on a CPU, which holds as many times "
                "that much; on GPUs each has its own."
            )
        return found


def replicas_of(strategy: Any) -> Replicas | None:
    """How `strategy` spreads a training; None where there is nothing to spread.

    Raises:
        ValueError: replicas of such a strategy do not each train with variables of their own.
    """
    if strategy is None or strategy is _default_strategy():
        return None
    mirrored = (
        tf.distribute.MirroredStrategy,
        tf.distribute.MultiWorkerMirroredStrategy,
        tf.distribute.OneDeviceStrategy,
    )
    if not isinstance(strategy, mirrored):
        raise UsageError(
            f"{type(strategy).__name__} is none of the strategies that memest estimates, which are MirroredStrategy, "
            "MultiWorkerMirroredStrategy and OneDeviceStrategy. Pass a function that makes the model outside the "
            "strategy's scope, and batch_size= of one device."
        )
    return Replicas(type(strategy).__name__, strategy.num_replicas_in_sync, len(strategy.extended.worker_devices))


def _default_strategy() -> Any:
    with tf.Graph().as_default(), outside_strategies():
        return tf.distribute.get_strategy()


class MadeUnderStrategyError(UsageError):
    """A function made a model that is spread over devices.

    Attributes:
        model: the model.
    """

    def __init__(self, model: keras.Model) -> None:
        super().__init__(f"The model {model.name!r} was made under a strategy.")
        self.model = model


def require_one_replica(model: keras.Model) -> None:
    """Raises MadeUnderStrategyError if `model` was made under a strategy."""
    if getattr(model, "_distribute_strategy", None) is not None:
        raise MadeUnderStrategyError(model)


@contextlib.contextmanager
def outside_strategies() -> Iterator[None]:
    """Inside, the caller is in no strategy's scope: what is made there is made for one device."""
    graph = tf_ops.get_default_graph()
    before = graph._distribution_strategy_stack, graph._variable_creator_stack
    graph._distribution_strategy_stack, graph._variable_creator_stack = [], []
    try:
        yield
    finally:
        graph._distribution_strategy_stack, graph._variable_creator_stack = before


def on_one_device(model: keras.Model) -> Callable[[], keras.Model]:
    """A function that makes `model` again as it would be on one device, compiled alike.

    Raises:
        ValueError: the model is not built, or cannot be made from its configuration.
    """
    configuration = _configuration_of(model)
    own = layer_classes(model)
    compiled = dict(model._compile_config.config) if model.compiled and hasattr(model, "_compile_config") else None
    shapes = _build_shapes(model)

    def make() -> keras.Model:
        with keras.saving.custom_object_scope(own):
            made = type(model)() if configuration is None else type(model).from_config(copy.deepcopy(configuration))
            if not made.built and shapes is not None:
                made.build(shapes)
            if compiled is not None:
                made.compile(**{name: _again(value) for name, value in compiled.items()})
        return made

    return make


def _configuration_of(model: keras.Model) -> dict[str, Any] | None:
    """What the model is made from again; None for a class that takes no arguments."""
    require_built(model)
    try:
        with keras.saving.custom_object_scope(layer_classes(model)):
            found: dict[str, Any] = model.get_config()
            with tf.Graph().as_default():
                # Keras changes what it reads.
                type(model).from_config(copy.deepcopy(found))
            return found
    except Exception as error:
        with contextlib.suppress(Exception), tf.Graph().as_default():
            type(model)()
            return None
        raise UsageError(
            f"The model {model.name!r} ({type(model).__name__}) was made under a strategy, and cannot be made again "
            f"for one device from its configuration ({type(error).__name__}: {error}). Pass a function that makes it "
            "outside the strategy's scope, and batch_size= of one replica."
        ) from error


def _build_shapes(model: keras.Model) -> Any:
    shapes = getattr(model, "_build_shapes_dict", None) or {}
    return next(iter(shapes.values())) if len(shapes) == 1 else None


def _again(value: Any) -> Any:
    """An argument of `compile`, with what has variables made anew."""

    def again(one: Any) -> Any:
        if isinstance(one, keras.optimizers.Optimizer):
            return copied_optimizer(one)
        if isinstance(one, keras.metrics.Metric):
            return type(one).from_config(one.get_config())
        return one

    return keras.tree.map_structure(again, value) if isinstance(value, (list, tuple, dict)) else again(value)


@contextlib.contextmanager
def gradients_summed(optimizers: Iterable[Any], replicas: int) -> Iterator[None]:
    """Inside, `optimizers` sum their gradients over so many replicas before they update."""
    changed = [one for one in optimizers if replicas > 1 and hasattr(one, _METHOD)]
    for optimizer in changed:
        vars(optimizer)[_METHOD] = functools.partial(_summed, replicas)
    try:
        yield
    finally:
        for optimizer in changed:
            vars(optimizer).pop(_METHOD, None)


def _summed(replicas: int, grads_and_vars: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The ops that TensorFlow would make, on one replica, for `_all_reduce_sum_gradients`."""
    pairs = list(grads_and_vars)
    found = [gradient for gradient, _ in pairs]
    dense: dict[Any, list[int]] = {}
    for index, gradient in enumerate(found):
        if isinstance(gradient, tf.IndexedSlices):
            # Values and indices of all replicas are gathered.
            found[index] = tf.IndexedSlices(
                tf.concat([gradient.values] * replicas, 0),
                tf.concat([gradient.indices] * replicas, 0),
                gradient.dense_shape,
            )
        elif gradient is not None:
            dense.setdefault(gradient.dtype, []).append(index)
    for indexes in dense.values():
        for index, gradient in zip(indexes, _all_reduced([found[index] for index in indexes], replicas), strict=True):
            found[index] = gradient
    return [(gradient, variable) for gradient, (_, variable) in zip(found, pairs, strict=True)]


def _all_reduced(gradients: Sequence[Any], replicas: int) -> list[Any]:
    flat = tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], 0)
    total = tf.raw_ops.CollectiveReduceV2(
        input=flat, group_size=replicas, group_key=1, instance_key=1, ordering_token=[], merge_op="Add", final_op="Id"
    )
    sizes = [gradient.shape.num_elements() for gradient in gradients]
    return [tf.reshape(part, gradient.shape) for part, gradient in zip(tf.split(total, sizes), gradients, strict=True)]
