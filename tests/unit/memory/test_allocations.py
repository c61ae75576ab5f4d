"""What is alive at any moment of a timeline."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.memory.allocations import Alive, Allocations
from tests.strategies import items

buffers = st.lists(st.tuples(items, st.integers(0, 12), st.integers(0, 12)), max_size=12)


@given(buffers, st.integers(0, 12))
def test_what_is_alive_is_what_has_begun_and_not_ended(rows, position):
    alive = Allocations.of(rows).items_at(position)
    expected = [item for item, begin, end in rows if begin <= position < end]
    assert sorted(alive, key=repr) == sorted(expected, key=repr)
    assert [item.bytes for item in alive] == sorted((item.bytes for item in alive), reverse=True)


@given(buffers)
def test_round_trip(rows):
    packed = Allocations.of(rows)
    assert Allocations.from_dict(json.loads(json.dumps(packed.to_dict()))) == packed
    there = [row for row in rows if row[1] < row[2]]
    assert sorted(packed, key=repr) == sorted(there, key=repr)


@given(items)
def test_alike_buffers_are_told_together(item):
    other = replace(item, bytes=item.bytes + 1)
    packed = Allocations.of([(item, 0, 3), (item, 1, 3), (other, 1, 2)])
    assert len(packed.kinds) == 2
    assert packed.alive_at(0) == [Alive(item, 1)]
    assert packed.alive_at(1) == [Alive(other, 1), Alive(item, 2)]
    assert packed.alive_at(2)[0].bytes == 2 * item.bytes
    assert packed.alive_at(3) == []
