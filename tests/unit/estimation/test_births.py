"""How variables come to be in a function's first call, against what the allocator of a real one was asked for."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.births import Birth, shared_birth_events
from tensorboard_plugin_memest.estimation.eager import EagerRun, Made
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, Event
from tensorboard_plugin_memest.estimation.execution import VariableStore
from tests.unit.estimation.graphs import variable

SIZES = {"a": 600, "b": 1200}


def _accumulator(name: str) -> Birth:
    """A slot that begins as ones times a number, as Adagrad's does."""
    one = variable(name, SIZES[name])
    made = [Made("Const", (), "float32", 4)]
    made += [Made(op, one.shape, one.dtype, one.bytes) for op in ("Fill", "Mul")]
    return Birth(one, EagerRun([(0, True), (1, True), (2, True)], made, 2, one.shape, one.dtype, recipe=name))


def _random(name: str, elements: int) -> Birth:
    one = variable(name, elements)
    made = [Made("Const", (), "int32", 4), Made("StatelessRandomUniformV2", one.shape, one.dtype, one.bytes)]
    return Birth(one, EagerRun([(0, True), (1, True), (0, False)], made, 1, one.shape, one.dtype, recipe=name))


def _played(events: list[Event]) -> list[int]:
    return [event.buffer.bytes * (1 if event.kind == ALLOCATE else -1) for event in events if event.kind != "relabel"]


def test_first_values_without_chance_are_computed_ahead_on_the_host_one_after_another():
    # As profiled with TensorFlow 2.21: of each an op's input, a copy of it and the result, then the constant once more,
    # and at last all constants.
    a, b = 4 * SIZES["a"], 4 * SIZES["b"]
    computed = [move for size in (a, b) for move in (size, size, -size, size, -size, -size)]
    store = VariableStore()
    events = shared_birth_events([_accumulator("a"), _accumulator("b")], store, on_the_host=True)
    handles = [200, 200]
    assert _played(events) == [*handles, *computed, a, -a, b, -b, a, b]
    assert [buffer.bytes for buffer in store.buffers.values()] == [a, b]


def test_on_a_gpu_only_the_constants_are_there():
    events = shared_birth_events([_accumulator("a"), _accumulator("b")], VariableStore(), on_the_host=False)
    assert _played(events) == [4 * SIZES["a"], 4 * SIZES["b"]]


def test_what_is_random_or_grows_is_computed_in_the_run():
    birth = _random("a", 100_000)
    events = shared_birth_events([birth], VariableStore(), on_the_host=True)
    assert _played(events) == [200, 4, 400_000, -4]
    assert [event.kind for event in events].count(FREE) == 1
