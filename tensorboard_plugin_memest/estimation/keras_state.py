"""Leaves a model, Keras, Python and NumPy as they were, whatever building and tracing change."""

from __future__ import annotations

import contextlib
import copy
import random
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np
from keras.src.backend.common import global_state
from tensorflow.python.eager import context as tf_context

from tensorboard_plugin_memest.estimation.reachable import is_wrapper, reachable

_NO_SCOPES = {"current_call_ctx": None, "stateless_scope": None, "symbolic_scope": None}


@contextlib.contextmanager
def untouched_globals() -> Iterator[None]:
    """Restores, on leaving, every random state and Keras' global state (name counters, global seed generator).

    Without it a model traced here would shift the names of the layers the user makes next (`dense` would be
    `dense_1`) and the numbers that their initializers draw.
    """
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    context = tf_context.context()
    seeds = {name: copy.copy(vars(context)[name]) for name in ("_seed", "_rng") if name in vars(context)}
    trackers = {name: vars(global_state)[name] for name in ("GLOBAL_STATE_TRACKER", "GLOBAL_SETTINGS_TRACKER")}
    keras_state = [
        (tracker, {name: _copied(value) for name, value in vars(tracker).items()}) for tracker in trackers.values()
    ]
    drawn = _global_seeds()
    # What the caller is in the middle of, a layer's call or a stateless scope, is none of the model's business here.
    tracker = vars(global_state.GLOBAL_STATE_TRACKER)
    tracker.update({name: value for name, value in _NO_SCOPES.items() if name in tracker})
    tracker["name_scope_stack"] = []
    try:
        yield
    finally:
        # What is built may call `clear_session`, which puts new trackers in place of the old.
        vars(global_state).update(trackers)
        for changed, state in keras_state:
            vars(changed).clear()
            vars(changed).update(state)
        for state, value in drawn:
            if not np.array_equal(state.numpy(), value):
                state.assign(value)
        if "_rng" in seeds and seeds["_rng"].getstate() != context._rng.getstate():
            # Seeds that were drawn will be drawn again, and must not meet kernels that used them.
            context.clear_kernel_cache()
        vars(context).update(seeds)
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def _copied(value: Any) -> Any:
    # Counters and stacks are changed in place, so the containers are copied; what they hold is not.
    return copy.copy(value) if isinstance(value, (dict, list, set)) else value


def _global_seeds() -> list[tuple[Any, Any]]:
    """The state of the seed generator that layers without an own one draw from, if it exists already, and its value."""
    generator = global_state.get_global_attribute("global_seed_generator")
    if not isinstance(generator, keras.random.SeedGenerator) or not tf_context.executing_eagerly():
        return []
    return [(generator.state, generator.state.numpy())]


@contextlib.contextmanager
def untouched_objects(roots: Iterable[Any]) -> Iterator[None]:
    """Restores, on leaving, the attributes of everything that `roots` lead to and the contents of its containers.

    Only what changed is written, so that a model that is looked at elsewhere meanwhile is never without attributes.
    """
    things = reachable(roots)
    attributes = [(thing, dict(vars(thing))) for thing in things if hasattr(thing, "__dict__")]
    contents = [
        (thing, _contents(thing)) for thing in things if isinstance(thing, (list, dict, set)) and not is_wrapper(thing)
    ]
    try:
        yield
    finally:
        for thing, before in attributes:
            _restore_dict(dict, vars(thing), before)
        for container, items in contents:
            _restore_contents(container, items)


def _contents(container: Any) -> Any:
    if isinstance(container, dict):
        return dict(dict.items(container))
    return list(container) if isinstance(container, list) else set(container)


def _restore_contents(container: Any, before: Any) -> None:
    # Through the base class: Keras' own containers take note of what goes in and out.
    if isinstance(container, dict):
        base = OrderedDict if isinstance(container, OrderedDict) else dict
        if list(container) != list(before):
            base.clear(container)
        _restore_dict(base, container, before)
    elif isinstance(container, list):
        if len(container) != len(before) or any(now is not then for now, then in zip(container, before, strict=True)):
            list.__setitem__(container, slice(None), before)
    elif container != before:
        set.clear(container)
        set.update(container, before)


def _restore_dict(base: type[dict[Any, Any]], container: dict[Any, Any], before: dict[Any, Any]) -> None:
    for key in list(container):
        if key not in before:
            base.__delitem__(container, key)
    for key, value in before.items():
        if key not in container or container[key] is not value:
            base.__setitem__(container, key, value)
