"""Leaves Keras, Python and NumPy as they were: what tracing a model touches besides the model."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from keras.src.backend.common import global_state
from tensorflow.python.eager import context as tf_context


@contextlib.contextmanager
def untouched_globals() -> Iterator[None]:
    """Restores, on leaving, every random state and Keras' global state (name counters, global seed generator).

    Without it a model traced here would shift the names of the layers the user makes next (`dense` would be
    `dense_1`) and the numbers that their initializers draw.
    """
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    context = tf_context.context()
    tensorflow_state = {name: copy.copy(vars(context)[name]) for name in ("_seed", "_rng") if name in vars(context)}
    tracker = vars(global_state.GLOBAL_STATE_TRACKER)
    keras_state = {name: _copied(value) for name, value in tracker.items()}
    try:
        yield
    finally:
        tracker.clear()
        tracker.update(keras_state)
        vars(context).update(tensorflow_state)
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def _copied(value: Any) -> Any:
    # Counters and stacks are changed in place, so the containers are copied; what they hold is not.
    return copy.copy(value) if isinstance(value, (dict, list, set)) else value


@contextlib.contextmanager
def untouched_objects(objects: list[Any]) -> Iterator[None]:
    """Restores, on leaving, the attributes of `objects` (a model and its layers) and the lists they hold."""
    saved = [(thing, dict(vars(thing))) for thing in objects]
    contents = {
        id(value): (value, copy.copy(value))
        for _, attributes in saved
        for value in attributes.values()
        if type(value) in (list, dict, set)
    }
    try:
        yield
    finally:
        for thing, attributes in saved:
            vars(thing).clear()
            vars(thing).update(attributes)
        for container, before in contents.values():
            container.clear()
            container.extend(before) if isinstance(container, list) else container.update(before)
