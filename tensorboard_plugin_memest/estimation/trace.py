"""A model's training step as a graph, traced with nothing allocated."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.common import global_state
from keras.src.trainers import compile_utils
from tensorflow.python.framework import func_graph as tf_func_graph
from tensorflow.python.ops import resource_variable_ops

from tensorboard_plugin_memest.estimation.layers import LayerPaths
from tensorboard_plugin_memest.estimation.subject import Batch
from tensorboard_plugin_memest.estimation.variables import LOSS, METRICS, OPTIMIZER, STEP, Variable, Variables

GRADIENT_SCOPE = "gradient_tape/"


@dataclass(frozen=True)
class Owner:
    """Whose an op is: a layer's path or a part such as `(loss)`, and whether it belongs to the optimizer's update."""

    layer: str
    is_update: bool = False


@dataclass
class Owners:
    """Who made which op, and through the name scopes of the forward pass, whose gradient an op computes."""

    by_op: dict[str, Owner] = field(default_factory=dict)
    by_scope: dict[str, Owner] = field(default_factory=dict)

    def record(self, op_name: str, owner: Owner) -> None:
        self.by_op[op_name] = owner
        if owner.layer != STEP and not owner.is_update and not op_name.startswith(GRADIENT_SCOPE):
            self.by_scope.setdefault(op_name.rpartition("/")[0], owner)

    def find(self, op_name: str) -> Owner:
        """The owner of an op of the step's graph, or of one that Grappler derived from it and named after it."""
        gradient = op_name.find(GRADIENT_SCOPE)
        if gradient < 0:
            for prefix in ("", "ConstantFolding/", "ArithmeticOptimizer/", "LayoutOptimizer/"):
                found = self.by_op.get(op_name.removeprefix(prefix))
                if found is not None:
                    return found
        # Gradient ops carry the scope of the forward op they belong to; the longest known scope names the layer.
        scope = op_name[gradient + len(GRADIENT_SCOPE) :] if gradient >= 0 else op_name
        while scope:
            scope = scope.rpartition("/")[0]
            found = self.by_scope.get(scope)
            if found is not None:
                return found
        return self.by_op.get(op_name, Owner(STEP))


class _ObservedGraph(tf_func_graph.FuncGraph):  # type: ignore[misc]
    """A FuncGraph that notes for each op which layer, metric or optimizer was being called when it was made."""

    def __init__(self, name: str, paths: LayerPaths) -> None:
        super().__init__(name)
        self.owners = Owners()
        self._paths = paths

    def _create_op_internal(self, *args: Any, **kwargs: Any) -> Any:
        op = super()._create_op_internal(*args, **kwargs)
        self.owners.record(op.name, self._current_owner(op.name))
        return op

    def _current_owner(self, op_name: str) -> Owner:
        stack = global_state.get_global_attribute("name_scope_stack") or []
        for entry in reversed(stack):
            path = self._paths.path_of(entry.caller)
            if path is not None:
                return Owner(path)
            if isinstance(entry.caller, keras.optimizers.Optimizer):
                return Owner(OPTIMIZER, is_update=True)
            if isinstance(entry.caller, keras.metrics.Metric):
                return Owner(METRICS)
        if op_name.startswith("compile_loss/"):
            return Owner(LOSS)
        return Owner(STEP)


@dataclass(frozen=True)
class Trace:
    """The training step of one model for one batch.

    Attributes:
        graph: the traced function's graph.
        variables: every variable the run keeps.
        handles: name of the graph's placeholder for a variable, to the variable.
        owners: who made which op.
        assumptions: what tracing had to assume.
    """

    graph: tf_func_graph.FuncGraph
    variables: list[Variable]
    handles: dict[str, Variable]
    owners: Owners
    assumptions: list[str]


def optimizers_of(model: keras.Model) -> list[Any]:
    """The optimizers among a model's attributes; models with an own `train_step` may have several."""
    return [value for value in vars(model).values() if isinstance(value, keras.optimizers.Optimizer)]


@contextlib.contextmanager
def stand_ins(model: keras.Model) -> Iterator[None]:
    """Puts unbuilt copies of the model's optimizers, loss and metrics in place while tracing.

    Building and tracing then creates the copies' variables and leaves the model's own objects unbuilt and untouched.
    What is built already is used as it is: tracing reads it only. Call it where new variables hold no memory.
    """
    attributes = vars(model)
    saved = dict(attributes)
    loss = saved.get("_compile_loss")
    metrics = saved.get("_compile_metrics")
    try:
        for name, value in saved.items():
            if isinstance(value, keras.optimizers.Optimizer) and not value.built:
                attributes[name] = _fresh(value)
        if loss is not None and not loss.built:
            attributes["_compile_loss"] = compile_utils.CompileLoss(
                loss._user_loss, loss._user_loss_weights, output_names=loss.output_names
            )
        if metrics is not None and not metrics.built:
            attributes["_compile_metrics"] = compile_utils.CompileMetrics(
                keras.tree.map_structure(_fresh_metric, metrics._user_metrics),
                keras.tree.map_structure(_fresh_metric, metrics._user_weighted_metrics),
                output_names=metrics.output_names,
            )
        yield
    finally:
        attributes.clear()
        attributes.update(saved)


def trace_step(model: keras.Model, batch: Batch, paths: LayerPaths) -> Trace:
    """Traces `model.train_step` for one batch, as `fit` would run it, from an iterator.

    Args:
        model: compiled; an existing model inside `stand_ins`. Call it where new variables hold no memory.
        batch: specs of the data.
        paths: the model's layers.

    Raises:
        RuntimeError: the step cannot be traced; the cause is attached.
    """
    symbolic = keras.tree.map_structure(
        lambda spec: keras.KerasTensor(spec.shape, keras.backend.standardize_dtype(spec.dtype)), batch.data
    )
    model._symbolic_build(data_batch=symbolic)
    graph = _ObservedGraph("train_step", paths)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def step_on_iterator(iterator: Any) -> Any:
        return model.train_step(next(iterator))

    tf_func_graph.func_graph_from_py_func(
        "train_step", step_on_iterator, (), {}, signature=(tf.data.IteratorSpec(batch.data),), func_graph=graph
    )
    variables = Variables(model, paths, optimizers_of(model))
    handles: dict[str, Variable] = {}
    assumptions: list[str] = []
    for external, internal in graph.captures:
        if external.dtype != tf.resource:
            continue
        found = variables.of_handle(external)
        if found is None:
            data = resource_variable_ops.get_eager_safe_handle_data(external)
            if not data.is_set or len(data.shape_and_type) != 1:
                assumptions.append(
                    f"The resource {internal.op.name!r} is no variable (a lookup table or the like); "
                    "its memory was not counted."
                )
                continue
            spec = data.shape_and_type[0]
            shape = tf.TensorShape(spec.shape)
            if not shape.is_fully_defined():
                assumptions.append(
                    f"The variable {internal.op.name!r} has no fixed shape ({shape}); its memory was not counted."
                )
                continue
            found = variables.add_captured(
                external, internal.op.name.rpartition("/")[-1], tuple(shape), tf.as_dtype(spec.dtype).name
            )
        handles[internal.op.name] = found
    return Trace(graph, variables.all, handles, graph.owners, assumptions)


def _fresh(thing: Any) -> Any:
    return type(thing).from_config(thing.get_config())


def _fresh_metric(metric: Any) -> Any:
    # A metric may create variables at its first update, so the user's own object must not see one.
    return _fresh(metric) if isinstance(metric, keras.metrics.Metric) else metric
