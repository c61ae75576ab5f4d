"""How variables come to be in a function's first call, against what the allocator of a real one was asked for."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.births import (
    Birth,
    building_events,
    sent_birth_events,
    shared_birth_events,
)
from tensorboard_plugin_memest.estimation.eager import EagerRun, Made
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, Event
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
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


def _zeros(name: str, like: str) -> Birth:
    one = variable(name, SIZES[like])
    return Birth(one, EagerRun([(0, True)], [Made("Fill", one.shape, one.dtype, one.bytes)], 0, recipe=f"zeros {like}"))


def test_the_first_of_several_workers_computes_equal_values_once_and_sends_a_copy_for_each_variable():
    # As profiled on two workers with TensorFlow 2.21: the zeros of each shape, the slots, what is sent; then the copies
    # go, and at last the zeros.
    a, b = 4 * SIZES["a"], 4 * SIZES["b"]
    births = [_zeros(f"{like} {slot}", like) for like in "ab" for slot in ("momentum", "velocity")]
    store = VariableStore()
    events = sent_birth_events(births, store, arrival=None, on_the_host=False)
    assert _played(events) == [a, b, a, a, b, b, a, a, b, b, -a, -a, -b, -b, -a, -b]
    assert [buffer.bytes for buffer in store.buffers.values()] == [a, a, b, b]
    assert len({id(buffer) for buffer in store.buffers.values()}) == 4


def test_other_workers_receive_what_then_is_the_variable_in_any_order():
    births = [_zeros(f"{like} {slot}", like) for like in "ab" for slot in ("momentum", "velocity")]
    orders = set()
    for arrival in range(9):
        store = VariableStore()
        orders.add(tuple(_played(sent_birth_events(births, store, arrival=arrival, on_the_host=False))))
        assert set(store.buffers) == {birth.variable for birth in births}
    assert {tuple(sorted(order)) for order in orders} == {(2400, 2400, 4800, 4800)}
    assert len(orders) > 1


def test_while_a_model_is_built_other_tensors_come_and_go_between_its_variables():
    # The code makes two tensors, of which a variable takes over the second, and keeps a third.
    sizes = [4 * SIZES["a"], 4 * SIZES["b"], 40]
    building = EagerRun(
        [(0, True), (1, True), (0, False), (1, False), (2, True)],
        [Made("Mul", (size // 4,), "float32", size) for size in sizes],
    )
    taken = Birth(variable("b", SIZES["b"]), EagerRun(), moment=2, value=1)
    store = VariableStore()
    events, left = building_events([taken, _zeros("a", "a")], building, store, handles=False)
    first, second, kept = sizes
    assert _played(events) == [first, second, first, -first, kept]
    assert _played(left) == [-kept]
    assert [(one.name, buffer.bytes) for one, buffer in store.buffers.items()] == [("b", second), ("a", first)]
