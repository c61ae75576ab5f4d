"""Whose a tensor is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.memory.category import Category


@dataclass(frozen=True)
class Whose:
    """Layer, category, role and variable of a tensor, as in `Item`; None where it cannot be told."""

    layer: str | None = None
    category: Category | None = None
    role: str | None = None
    variable: str | None = None


def owners_to_list(owners: Mapping[str, Whose]) -> list[Any]:
    """Ops by owner: there are thousands of ops, and few owners."""
    ops_of: dict[Whose, list[str]] = {}
    for op, whose in owners.items():
        ops_of.setdefault(whose, []).append(op)
    return [
        [whose.layer, None if whose.category is None else whose.category.value, whose.role, whose.variable, ops]
        for whose, ops in ops_of.items()
    ]


def owners_from_list(data: Sequence[Any]) -> dict[str, Whose]:
    """What `owners_to_list` was given."""
    return {
        op: Whose(layer, None if category is None else Category(category), role, variable)
        for layer, category, role, variable, ops in data
        for op in ops
    }
