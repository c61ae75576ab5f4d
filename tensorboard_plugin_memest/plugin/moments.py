"""One moment of a timeline, looked into: everything alive then, alone and added up by what people ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorboard_plugin_memest.memory.allocations import Alive
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item

Plain = dict[str, Any]

_NO_SHAPE = "(shape not known)"

# By what it can be added up: the part of an item that its group is named after.
GROUPINGS: dict[str, Callable[[Item], str]] = {
    "layer": lambda item: item.layer,
    "op": lambda item: item.role,
    "category": lambda item: item.category.value,
    "shape": lambda item: _shape(item),
}


def moment_view(alive: Iterable[Alive], by: str) -> Plain:
    """Everything alive, and its sums: nothing is left out, however small.

    Args:
        by: one of GROUPINGS.
    """
    key = GROUPINGS[by]
    groups: dict[str, list[Alive]] = {}
    for one in alive:
        groups.setdefault(key(one.item), []).append(one)
    ordered = sorted(groups.items(), key=lambda entry: (-_bytes(entry[1]), entry[0]))
    return {
        "by": by,
        "bytes": sum(_bytes(group) for group in groups.values()),
        "count": sum(_count(group) for group in groups.values()),
        "groups": [
            {
                "key": name,
                "bytes": _bytes(group),
                "count": _count(group),
                "categories": _categories(group),
                "items": [
                    {**one.item.to_dict(), "count": one.count, "all_bytes": one.bytes}
                    for one in sorted(group, key=lambda one: -one.bytes)
                ],
            }
            for name, group in ordered
        ],
    }


def _shape(item: Item) -> str:
    if item.shape is None:
        return _NO_SHAPE
    return f"{list(item.shape)} {item.dtype or ''}".rstrip()


def _bytes(group: Iterable[Alive]) -> int:
    return sum(one.bytes for one in group)


def _count(group: Iterable[Alive]) -> int:
    return sum(one.count for one in group)


def _categories(group: Iterable[Alive]) -> dict[str, int]:
    sums = dict.fromkeys(Category, 0)
    for one in group:
        sums[one.item.category] += one.bytes
    return {category.value: number for category, number in sums.items() if number}
