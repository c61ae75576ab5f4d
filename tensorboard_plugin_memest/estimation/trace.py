"""A training step as a graph, traced with nothing allocated."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.common import global_state
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function, OptionalXlaContext
from tensorflow.python.framework import func_graph as tf_func_graph
from tensorflow.python.framework import op_callbacks
from tensorflow.python.ops import resource_variable_ops

from tensorboard_plugin_memest.estimation.deadline import check_deadline
from tensorboard_plugin_memest.estimation.layers import LayerPaths, outermost_layers
from tensorboard_plugin_memest.estimation.reachable import reachable
from tensorboard_plugin_memest.estimation.repeated import RepeatingGraph
from tensorboard_plugin_memest.estimation.replicas import gradients_summed
from tensorboard_plugin_memest.estimation.subject import Batch
from tensorboard_plugin_memest.estimation.variables import LOSS, METRICS, OPTIMIZER, STEP, Variable, Variables

GRADIENT_SCOPE = "gradient_tape/"

_WORDS = {"train_step": "training", "test_step": "evaluation", "predict_step": "prediction"}


class UntraceableError(RuntimeError):
    """The training step cannot be traced for the batch; the cause is attached."""


@dataclass(frozen=True)
class Owner:
    """Whose an op is: a layer's path or a part such as `(loss)`, and whether it belongs to the optimizer's update."""

    layer: str
    is_update: bool = False


@dataclass
class Owners:
    """Who made which op, and through the name scopes of the forward pass, whose gradient an op computes.

    Attributes:
        by_op: owner of each op of the step's graph, by name.
        by_called_op: the same for ops of functions that it calls; None for a name that several owners gave.
        by_scope: owner of each name scope of the forward pass.
    """

    by_op: dict[str, Owner] = field(default_factory=dict)
    by_called_op: dict[str, Owner | None] = field(default_factory=dict)
    by_scope: dict[str, Owner] = field(default_factory=dict)

    def record(self, op_name: str, owner: Owner, *, called: bool = False) -> None:
        """Notes who made an op of the step's graph, or of a function that is called in it."""
        if not called:
            self.by_op[op_name] = owner
        elif self.by_called_op.setdefault(op_name, owner) != owner:
            self.by_called_op[op_name] = None
        scope = op_name.rpartition("/")[0]
        if scope and owner.layer != STEP and not owner.is_update and not _is_gradient(op_name):
            self.by_scope.setdefault(scope, owner)

    def find(self, op_name: str) -> Owner:
        """The owner of an op of the step, or of one that Grappler derived from it and named after it."""
        name = _GRAPPLER_SUFFIX.sub("", _GRAPPLER_PREFIX.sub("", op_name))
        if not _is_gradient(name):
            for candidate in _without_callers(name):
                found = self.by_op.get(candidate) or self.by_called_op.get(candidate)
                if found is not None:
                    return found
        return self.by_scope_of(name)

    def by_scope_of(self, name: str) -> Owner:
        """The owner of the longest known scope that an op is in.

        Gradient ops carry the scope of the forward op that they belong to.
        """
        for candidate in _without_callers(_GRADIENT.split(name)[-1]):
            scope = candidate
            while scope:
                scope = scope.rpartition("/")[0]
                # The scope's last part is the forward op itself.
                found = self.by_scope.get(scope) or self.by_op.get(scope)
                if found is not None and found.layer != STEP and not found.is_update:
                    return found
        return Owner(STEP)


# What Grappler puts around the names of ops that it makes, or moves out of a function.
_GRAPPLER_PREFIX = re.compile(r"^(ConstantFolding|ArithmeticOptimizer|LayoutOptimizer)/")
_GRAPPLER_SUFFIX = re.compile(r"_tfg_(inlined|result)_.*$")

# Scopes of gradients: of a tape, of a loop, of a function.
_GRADIENT = re.compile(r"(?:^|/)(?:gradient_tape|gradients)/")


def _is_gradient(op_name: str) -> bool:
    return _GRADIENT.search(op_name) is not None


def _without_callers(name: str) -> Iterator[str]:
    """`name`, then without its first scope, and so on: an inlined op has the names of its callers before its own."""
    while name:
        yield name
        name = name.partition("/")[2]


class ObservedGraph(RepeatingGraph):
    """A FuncGraph that notes for each op what was being called when it was made, outermost first."""

    def __init__(self, name: str, things: Sequence[Any]) -> None:
        """An empty graph.

        Args:
            name: its name.
            things: what is going to be called: layers, metrics, modules, and what holds such.
        """
        super().__init__(name)
        self._things = things
        self._has_modules = any(isinstance(thing, tf.Module) for thing in things)
        self._made: list[tuple[str, bool, tuple[Any, ...]]] = []  # name, whether in a called function, callers
        self._last: tuple[Any, ...] = ()
        self._measuring: list[Any] = []  # metrics that are at work

    def _create_op_internal(self, *args: Any, **kwargs: Any) -> Any:
        op = super()._create_op_internal(*args, **kwargs)
        self._made.append((op.name, False, self._callers()))
        return op

    @contextlib.contextmanager
    def functions_observed(self) -> Iterator[None]:
        """Inside, ops of other graphs are noted too: of functions that are traced because this one calls them."""

        def note(*_: Any, op_name: str | None = None, graph: Any = None) -> None:
            check_deadline()
            if op_name is not None and graph is not self:
                self._made.append((op_name, True, self._callers()))

        op_callbacks.add_op_callback(note)
        try:
            yield
        finally:
            op_callbacks.remove_op_callback(note)

    @contextlib.contextmanager
    def metrics_observed(self) -> Iterator[None]:
        """Inside, what metrics do is noted as theirs: they open no name scope of their own.

        The attributes that this takes are left to whoever puts the metrics back as they were.
        """
        for metric in [thing for thing in reachable(self._things) if isinstance(thing, keras.metrics.Metric)]:
            for method in ("update_state", "result"):
                vars(metric)[method] = self._noted(metric, getattr(metric, method))
        yield

    def _noted(self, metric: Any, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self._measuring.append(metric)
            try:
                return method(*args, **kwargs)
            finally:
                self._measuring.pop()

        return noted

    def _callers(self) -> tuple[Any, ...]:
        stack = global_state.get_global_attribute("name_scope_stack") or []
        # A scope without a caller says by its name what it is: losses open such scopes.
        callers = (*(entry.name if entry.caller is None else entry.caller for entry in stack), *self._measuring)
        if self._has_modules:
            callers = (*_modules_at_work(), *callers)
        # Most ops have the callers of the one before: one tuple for all of them.
        if len(callers) != len(self._last) or any(new is not old for new, old in zip(callers, self._last, strict=True)):
            self._last = callers
        return self._last

    def owners(self, paths: LayerPaths) -> Owners:
        """Who made which op, in the names of `paths`."""
        owners = Owners()
        losses = {thing.name for thing in reachable(self._things) if isinstance(thing, keras.losses.Loss)}
        for name, called, callers in self._made:
            owners.record(name, _owner(callers, paths, losses), called=called)
        return owners


def _modules_at_work() -> list[tf.Module]:
    """The modules whose methods are being run, outermost first: unlike layers, they need not open a name scope."""
    found = []
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_argcount and code.co_varnames[0] == "self":
            caller = frame.f_locals["self"]
            if isinstance(caller, tf.Module):
                found.append(caller)
        frame = frame.f_back  # type: ignore[assignment]
    return found[::-1]


def _owner(callers: Sequence[Any], paths: LayerPaths, losses: set[str]) -> Owner:
    for caller in reversed(callers):
        path = paths.path_of(caller)
        if path is not None:
            return Owner(path)
        if isinstance(caller, keras.optimizers.Optimizer):
            return Owner(OPTIMIZER, is_update=True)
        if isinstance(caller, keras.metrics.Metric):
            return Owner(METRICS)
        if isinstance(caller, str) and caller in losses:
            return Owner(LOSS)
    return Owner(STEP)


@dataclass(frozen=True)
class Trace:
    """A training step for one batch.

    Attributes:
        graph: the traced function's graph.
        layers: the layers, those included that were made while it was traced.
        variables: every variable that the run keeps.
        handles: name of the graph's placeholder for a variable, to the variable.
        fed: names of the graph's placeholders for tensors that the caller of the step passes, and holds meanwhile.
        owners: who made which op.
        assumptions: what tracing had to assume.
    """

    graph: tf_func_graph.FuncGraph
    layers: LayerPaths
    variables: Variables
    handles: dict[str, Variable]
    fed: set[str]
    owners: Owners
    assumptions: list[str]


def trace_step(
    model: keras.Model,
    batch: Batch,
    taken: Iterable[str] = (),
    *,
    for_xla: bool = False,
    method: str = "train_step",
    replicas: int = 1,
) -> Trace:
    """Traces `model.train_step` for one batch, as `fit` would run it, from an iterator; prediction gets its batch.

    What is not built yet is built on the way, as in the first step of `fit`. Call it where new variables hold no
    memory, and where the model is put back as it was afterwards.

    Args:
        model: compiled.
        batch: specs of the data.
        taken: name scopes that something has opened before, so that the next one of that name gets a number.
        for_xla: whether it is to be compiled; loops keep what they store in another form then.
        method: `"train_step"`, or `"test_step"` or `"predict_step"` instead.
        replicas: over how many it sums its gradients.

    Raises:
        UntraceableError: the step cannot be traced.
    """
    _build_optimizer(model)
    failed = []
    for data in batch.ways(model):
        try:
            if method == "predict_step":
                # `predict` takes a batch from its iterator itself, and holds it while the step runs.
                trace = trace_function(method, _step(model, method, for_xla=for_xla), [data], lambda: [model], taken)
            else:
                step = _step_on_iterator(model, method, for_xla=for_xla)
                trace = trace_function(method, step, [tf.data.IteratorSpec(data)], lambda: [model], taken, replicas)
        except Exception as error:
            failed.append((data, error))
            continue
        if batch.y is None and isinstance(data, tuple) and len(data) > 1:
            trace.assumptions.append(f"inputs= was taken for the whole batch as the data yields it, {_in_words(data)}.")
        return trace
    tried = "\nnor for ".join(f"{_in_words(data)}: {type(error).__name__}: {error}" for data, error in failed)
    raise UntraceableError(
        f"The {_WORDS[method]} step of the model {model.name!r} ({type(model).__name__}) cannot be traced for batches "
        f"of {tried}\n"
        "If that is not what it is fed, pass inputs= and targets= as tf.TensorSpecs in the structure of the data; a "
        "batch of more parts than inputs and targets, such as sample weights, whole as inputs=, and targets=()."
    ) from failed[0][1]


def _step(model: keras.Model, method: str, *, for_xla: bool) -> Callable[[Any], Any]:
    """One step on a batch."""

    def step(fed: Any) -> Any:
        with OptionalXlaContext(for_xla):
            return getattr(model, method)(fed)

    return step


def _step_on_iterator(model: keras.Model, method: str, *, for_xla: bool) -> Callable[[Any], Any]:
    """What `fit` calls with its iterator: one step, or in graph mode Keras' own loop over several."""
    step = _step(model, method, for_xla=for_xla)

    def one_step(iterator: Any) -> Any:
        return step(next(iterator))

    if for_xla or method != "train_step" or model.steps_per_execution == 1:
        return one_step
    model.jit_compile = model.run_eagerly = False
    model.make_train_function(force=True)
    function = model.train_function
    if not isinstance(function, Function):
        # Newer releases of Keras look at the iterator before they call the loop.
        function = inspect.getclosurevars(function).nonlocals["multi_step_on_iterator"]
    loop: Callable[[Any], Any] = function.python_function
    return loop


def trace_function(
    name: str,
    function: Callable[..., Any],
    signature: Iterable[Any],
    find: Callable[[], list[Any]],
    taken: Iterable[str] = (),
    replicas: int = 1,
) -> Trace:
    """Traces `function` and finds out whose its ops and variables are.

    Args:
        name: a name for it.
        function: takes tensors and the like; AutoGraph leaves it alone.
        signature: specs of its arguments.
        find: the layers, optimizers, metrics and variables that it uses; asked again once they are built.
        taken: name scopes that something has opened before, so that the next one of that name gets a number.
        replicas: over how many its optimizers sum their gradients.

    Raises:
        Exception: whatever the function raises.
    """
    things = find()
    optimizers = [thing for thing in reachable(things) if isinstance(thing, keras.optimizers.Optimizer)]
    graph = ObservedGraph(name, things)
    for scope in taken:
        graph.unique_name(scope)
    fed: set[str] = set()

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def observed(*arguments: Any) -> Any:
        fed.update(
            tensor.op.name
            for tensor in tf.nest.flatten(arguments, expand_composites=True)
            if tensor.dtype not in (tf.resource, tf.variant)
        )
        with (
            graph.functions_observed(),
            graph.metrics_observed(),
            graph.updates_repeated(optimizers),
            gradients_summed(optimizers, replicas),
        ):
            return function(*arguments)

    tf_func_graph.func_graph_from_py_func(name, observed, (), {}, signature=tuple(signature), func_graph=graph)
    return traced_by(graph, find, fed)


def traced_by(graph: ObservedGraph, find: Callable[[], list[Any]], fed: Collection[str] = ()) -> Trace:
    """What a graph shows in which a step was traced.

    Args:
        graph: the graph.
        find: the layers, optimizers, metrics and variables that the step uses.
        fed: as in `Trace`.
    """
    things = find()
    paths = LayerPaths(*outermost_layers(things))
    variables = Variables(things, paths)
    handles, assumptions = _captured(graph, variables)
    return Trace(graph, paths, variables, handles, set(fed), graph.owners(paths), assumptions)


def _build_optimizer(model: keras.Model) -> None:
    """Builds the model's optimizer where that can be done before the step is traced.

    `fit` traces a step anew when the first trace created variables. Here that is saved, and ops of the update still get
    the names that they have in the run: in one trace, the optimizer would open its scope twice.
    """
    optimizer = getattr(model, "optimizer", None)
    if isinstance(optimizer, keras.optimizers.Optimizer) and model.built and not optimizer.built:
        with tf_func_graph.FuncGraph("build").as_default():
            optimizer.build(model.trainable_variables)


def _captured(graph: ObservedGraph, variables: Variables) -> tuple[dict[str, Variable], list[str]]:
    """The variables that the step uses, by the name of their placeholder, and what had to be assumed about others."""
    handles: dict[str, Variable] = {}
    notes: list[str] = []
    others: list[str] = []
    for external, internal in graph.captures:
        if external.dtype != tf.resource:
            continue
        found = variables.of_handle(external)
        if found is None:
            data = resource_variable_ops.get_eager_safe_handle_data(external)
            if data is None or not data.is_set or len(data.shape_and_type) != 1:
                if "data::IteratorResource" in str(external):
                    continue  # It gives the batch; what its pipeline holds is the host's.
                notes.append(
                    f"The resource {internal.op.name!r} is no variable (a lookup table or the like); its memory was "
                    "not counted."
                )
                continue
            spec = data.shape_and_type[0]
            shape = tf.TensorShape(spec.shape)
            if not shape.is_fully_defined():
                notes.append(
                    f"The variable {internal.op.name!r} has no fixed shape ({shape}); its memory was not counted."
                )
                continue
            found = variables.add_other(
                external, internal.op.name.rpartition("/")[-1], tuple(shape), tf.as_dtype(spec.dtype).name
            )
            others.append(found.name)
        handles[internal.op.name] = found
    if others:
        notes.append(
            f"The step uses variables that are none of the model's, its optimizers' or its metrics' ({few(others)}); "
            "they were counted."
        )
    return handles, notes


def few(names: list[str]) -> str:
    """The first of `names`, and how many there are besides."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _in_words(data: Any) -> str:
    described = keras.tree.map_structure(lambda spec: f"{tuple(spec.shape)} {spec.dtype.name}", data)
    return str(described).replace("'", "")
