"""One tensor or variable that is alive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.memory.category import Category

# Roles of what a compiled step allocates beside its temporary memory.
RESULT = "result of the step"
RESULT_ADDRESSES = "addresses of the results"
FIRST_VALUE = "first value of the slots"
RESULT_ROLES = frozenset({RESULT, RESULT_ADDRESSES, FIRST_VALUE})


@dataclass(frozen=True)
class Item:
    """One buffer that is alive at a moment.

    Attributes:
        layer: path of the layer it belongs to, or one of `"(optimizer)"`, `"(loss)"`, `"(metrics)"`, `"(input)"`,
            `"(step)"` (what the step function itself makes).
        name: the variable's path, or the name of the op that made the tensor.
        category: what it is for.
        role: the same in words of its variable: `"weight"`, `"gradient"`, `"momentum"`, `"velocity"`,
            `"update temporary"`; for other tensors the op's type, such as `"Conv2D output"`.
        variable: path of the weight it is a weight, gradient, slot or update temporary of; None for other tensors.
        shape: dimensions; None when unknown.
        dtype: `"float32"`; None when unknown.
        requested_bytes: bytes asked for, `shape` times the size of `dtype`.
        bytes: bytes the allocator holds for it, rounding included.
    """

    layer: str
    name: str
    category: Category
    role: str
    variable: str | None
    shape: tuple[int, ...] | None
    dtype: str | None
    requested_bytes: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "name": self.name,
            "category": self.category.value,
            "role": self.role,
            "variable": self.variable,
            "shape": None if self.shape is None else list(self.shape),
            "dtype": self.dtype,
            "requested_bytes": self.requested_bytes,
            "bytes": self.bytes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Item:
        return cls(
            layer=data["layer"],
            name=data["name"],
            category=Category(data["category"]),
            role=data["role"],
            variable=data["variable"],
            shape=None if data["shape"] is None else tuple(data["shape"]),
            dtype=data["dtype"],
            requested_bytes=data["requested_bytes"],
            bytes=data["bytes"],
        )


def by_category(items: list[Item] | tuple[Item, ...]) -> dict[Category, int]:
    """Bytes of `items` per category, in the order of `Category`, empty categories left out."""
    sums = dict.fromkeys(Category, 0)
    for item in items:
        sums[item.category] += item.bytes
    return {category: number for category, number in sums.items() if number}
