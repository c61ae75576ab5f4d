"""Single tensors and variables, and their sums."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item, by_category
from tests.strategies import items


@given(items)
def test_dict_round_trip(item):
    assert Item.from_dict(item.to_dict()) == item


@given(st.lists(items))
def test_categories_add_up_and_none_is_empty(some):
    sums = by_category(some)
    assert sum(sums.values()) == sum(item.bytes for item in some)
    assert all(sums.values())
    order = list(Category)
    assert list(sums) == sorted(sums, key=order.index)


def test_categories_in_words():
    assert Category.OPTIMIZER_SLOTS.label == "optimizer slots"
    assert str(Category.OPTIMIZER_SLOTS) == "optimizer_slots"
