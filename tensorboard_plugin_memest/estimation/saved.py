"""What a device holds while the variables are saved.

Keras reads one variable after another. That is no copy, but of a table of which rows were changed (`copied_on_read`),
and what layers compute to be saved (`computed`).
TensorFlow's own checkpoints are written from where the variables are, by `read_value_no_copy` of
tensorflow/python/ops/resource_variable_ops.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorboard_plugin_memest.estimation.computed import Computed
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, Buffer, Event
from tensorboard_plugin_memest.estimation.saving import HostCost
from tensorboard_plugin_memest.estimation.tag import variable_tag
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tensorboard_plugin_memest.memory.allocations import Allocations
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.timeline import Timeline

CHECKPOINT = "checkpoint"
_BETWEEN = "(between steps)"


def reading_events(store: VariableStore, computed: Sequence[Computed] = ()) -> list[Event]:
    """What reading every variable takes, one after another, and what layers compute to be saved."""
    events = [event for one in computed for event in one.events()]
    for variable in store.buffers:
        if variable in store.copied_on_read:
            copy, tag = Buffer(variable.bytes), variable_tag(variable)
            read = replace(tag, category=Category.TEMPORARIES, role="copy that is saved")
            events += [Event(ALLOCATE, copy, tag.name, read), Event(FREE, copy, tag.name)]
    return events


def checkpoint_phase(costs: Sequence[HostCost], reading: Phase) -> Phase:
    """The phase in which a run saves.

    Args:
        costs: what the ways to save take of the host's memory.
        reading: while all variables are read.
    """
    host = max(cost.bytes for cost in costs)
    if any(cost.reads for cost in costs) and len(reading.timeline) > 1:
        return replace(reading, host_peak_bytes=host)
    assert reading.allocations is not None
    items = reading.allocations.items_at(len(reading.timeline) - 1)
    held = sum(item.bytes for item in items)
    return Phase(
        name=CHECKPOINT,
        peak_bytes=held,
        requested_peak_bytes=sum(item.requested_bytes for item in items),
        peak_without_scratch_bytes=held,
        peak_range=(held, held),
        peak_op=_BETWEEN,
        live_at_peak=items,
        timeline=Timeline("op", [0], [held], [0], [_BETWEEN]),
        host_peak_bytes=host,
        pool_bytes=reading.pool_bytes,
        allocations=Allocations.of((item, 0, 1) for item in items),
    )
