"""What layers compute while a model is saved, instead of storing what they hold.

Keras asks each layer for what is to be stored (`save_own_variables`). A Dense layer with LoRA answers with a kernel
into which the low-rank product is merged, and without the two factors. That is computed on the device; on the host it
has no second copy, as the values of variables have. So the layers' own code is followed, as eager steps are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import record

from tensorboard_plugin_memest.estimation.eager import EagerRun, ScratchGraph
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, Buffer, Event
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.variables import size_in_bytes
from tensorboard_plugin_memest.memory.category import Category

# What this gives is the variable's own memory.
_READ = "ReadVariableOp"


@dataclass(frozen=True)
class Computed:
    """What one layer does while it is saved.

    Attributes:
        layer: its path.
        stored: of each thing that it stores the bytes, and whether that is a variable.
        run: what it makes and gives up meanwhile.
    """

    layer: str
    stored: Sequence[tuple[int, bool]]
    run: EagerRun

    def events(self) -> list[Event]:
        """What that takes of the device's memory."""
        name = f"{self.layer} (to be saved)"
        held: dict[int, Buffer] = {}
        events = []
        for number, is_made in self.run.steps:
            made = self.run.made[number]
            if made.op == _READ:
                continue
            if is_made:
                held[number] = Buffer(made.bytes)
                role = f"{made.op} output, computed to be saved"
                tag = Tag(self.layer, name, Category.TEMPORARIES, role, None, made.shape, made.dtype)
                events.append(Event(ALLOCATE, held[number], name, tag))
            else:
                events.append(Event(FREE, held.pop(number), name))
        return [*events, *(Event(FREE, buffer, name) for buffer in held.values())]


def computed_to_be_saved(layers: Sequence[tuple[str, Any]]) -> list[Computed]:
    """What those of `layers`, each with its path, do that store more than their variables.

    A layer whose code needs values counts as one that stores its variables.
    """
    found = []
    for path, layer in layers:
        if not isinstance(layer, keras.layers.Layer):
            continue
        graph, store = ScratchGraph(), _Store()
        try:
            with graph.as_default(), record.stop_recording():
                layer.save_own_variables(store)
        except Exception:
            continue
        graph.sweep()
        if not all(is_variable for _, is_variable in store.stored):
            found.append(Computed(path, store.stored, graph.run_so_far))
    return found


class _Store:
    """Stands in for the file that layers write to: it notes what it gets and holds nothing of it."""

    def __init__(self) -> None:
        self.stored: list[tuple[int, bool]] = []

    def __setitem__(self, name: str, value: Any) -> None:
        is_variable = isinstance(value, (keras.Variable, tf.Variable))
        if not is_variable and not tf.is_tensor(value):
            value = tf.convert_to_tensor(value)
        self.stored.append((size_in_bytes(value.shape, value.dtype), is_variable))
