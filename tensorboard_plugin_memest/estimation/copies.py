"""How the variables of a model that exists came to be, seen in a copy of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import keras
from tensorflow.python.framework import func_graph as tf_func_graph

from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.eager import EagerRun
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.outputs import output_specs
from tensorboard_plugin_memest.estimation.subject import batch_size_of, input_specs, layer_classes


def creations_of_copy(model: keras.Model, given: Given) -> list[tuple[Any, EagerRun]] | None:
    """How the variables of `model` would be created, in that order.

    Returns:
        (the model's own variable, what computing its first value does to memory) of each; None if the model cannot be
        copied, or its copy has other variables.
    """
    own = layer_classes(model)
    for make in _ways_to_copy(model):
        creations = Creations()
        try:
            with (
                keras.saving.custom_object_scope(own),
                tf_func_graph.FuncGraph("copy").as_default(),
                creations.recorded(),
            ):
                copy = make()
                if model.built and not copy.built:
                    batch_size, _ = batch_size_of(model, given.batch_size, given.inputs)
                    output_specs(copy, input_specs(model, batch_size, given.inputs), batch_size)
        except Exception:
            continue
        if [_kind(variable) for variable in copy.variables] == [_kind(variable) for variable in model.variables]:
            runs = {id(creation.handle): creation.run for creation in creations.all}
            pairs = {id(new.handle): old for new, old in zip(copy.variables, model.variables, strict=True)}
            # In the order of their creation, which is not that of the model's list.
            return [(pairs[handle], run) for handle, run in runs.items() if handle in pairs]
    return None


def _ways_to_copy(model: keras.Model) -> list[Callable[[], keras.Model]]:
    # Many classes of users' models take no arguments and never thought of a configuration.
    ways: list[Callable[[], keras.Model]] = [type(model)]
    with contextlib.suppress(Exception):
        config = model.get_config()
        ways.insert(0, lambda: type(model).from_config(config))
    return ways


def _kind(variable: Any) -> tuple[Any, ...]:
    return (variable.name, tuple(variable.shape), variable.dtype)
