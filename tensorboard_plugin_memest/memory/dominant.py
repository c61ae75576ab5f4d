"""Which variables hold most of the memory, with everything that exists because of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.units import format_bytes, format_share

# Below this share of the peak a thing is not worth a person's attention.
WORTH_TELLING = 0.05

# Buffers below this share of the largest of their kind are summed up but not counted as copies; parts below this share
# of the whole are not put into words.
CRUMB = 0.01

_COUNTS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}


@dataclass(frozen=True)
class Part:
    """The copies of one kind that a dominant thing holds: its gradient, a slot, its update temporaries.

    Attributes:
        role: what they are.
        category: their category.
        count: how many copies, buffers too small to matter not counted.
        bytes: what all of them hold.
        requested_bytes: what was asked for them, without what the allocator rounds up and does not split off.
        share: of the peak, 0 to 1.
    """

    role: str
    category: Category
    count: int
    bytes: int
    requested_bytes: int
    share: float


@dataclass(frozen=True)
class Dominant:
    """A variable with its gradient, slots and temporaries, or a layer's activations; as one thing.

    Attributes:
        name: the variable's path, or the layer's path for tensors that belong to no variable.
        layer: the layer's path.
        shape: the variable's shape; None for a layer's tensors.
        bytes: all its copies at the peak.
        share: of the peak, 0 to 1.
        parts: what it is made of, weight first.
        sentence: the same in words.
    """

    name: str
    layer: str
    shape: tuple[int, ...] | None
    bytes: int
    share: float
    parts: tuple[Part, ...]
    sentence: str


def dominant(items: Iterable[Item]) -> list[Dominant]:
    """What holds at least 5 % of the bytes of `items`, largest first; the largest of all in any case."""
    groups: dict[tuple[str, str], list[Item]] = defaultdict(list)
    total = 0
    for item in items:
        total += item.bytes
        key = ("variable", item.variable) if item.variable else ("layer", item.layer)
        groups[key].append(item)
    ranked = sorted(groups.values(), key=lambda group: -sum(item.bytes for item in group))
    told = [_dominant(group, total) for group in ranked]
    decide = [entry for entry in told if entry.share >= WORTH_TELLING]
    if decide or not told:
        return decide
    largest = told[0]
    sentence = f"Nothing stands out; the most is {largest.name} with {format_share(largest.bytes, total)} of the peak."
    return [replace(largest, sentence=sentence + _alike_in_words([item for group in ranked for item in group], total))]


def _alike_in_words(items: list[Item], total: int) -> str:
    """What layers whose names differ by the numbers alone hold together, as in a stack of equal blocks."""
    kinds: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        kinds[re.sub(r"_\d+(?=/|$)", "", item.layer)].append(item)
    told = []
    for held in sorted(kinds.values(), key=lambda held: -sum(item.bytes for item in held)):
        layers, size = {item.layer for item in held}, sum(item.bytes for item in held)
        if len(layers) > 1 and size >= WORTH_TELLING * total:
            told.append(
                f"{len(layers):,} like {max(held, key=lambda item: item.bytes).layer} {format_share(size, total)}"
            )
    return f" Of layers alike together: {', '.join(told[:3])}." if told else ""


def _dominant(group: list[Item], total: int) -> Dominant:
    size = sum(item.bytes for item in group)
    roles: dict[tuple[Category, str], list[Item]] = defaultdict(list)
    for item in group:
        roles[item.category, item.role].append(item)
    order = list(Category)
    parts = tuple(
        _part(role, category, held, total)
        for (category, role), held in sorted(
            roles.items(), key=lambda entry: (order.index(entry[0][0]), -sum(i.bytes for i in entry[1]))
        )
    )
    first = group[0]
    weight = next((item for item in group if item.category is Category.WEIGHTS), None)
    shape = weight.shape if weight else None
    name = first.variable or first.layer
    if first.variable:
        copies = _copies_in_words([part for part in parts if part.bytes >= CRUMB * size])
        what = f"{name} {list(shape)}" if shape else name
        sentence = f"{what} is {format_share(size, total)} of the peak: {copies}."
    else:
        held = {category: sum(part.bytes for part in parts if part.category is category) for category in order}
        kinds = ", ".join(
            f"{format_bytes(bytes)} {category.label}"
            for category, bytes in held.items()
            if bytes and bytes >= CRUMB * size
        )
        sentence = f"The tensors of {name} are {format_share(size, total)} of the peak: {kinds}."
    return Dominant(name, first.layer, shape, size, size / total if total else 0.0, parts, sentence)


def _part(role: str, category: Category, held: list[Item], total: int) -> Part:
    size = sum(item.bytes for item in held)
    return Part(role, category, _count(held), size, sum(item.requested_bytes for item in held), size / total)


def _count(held: list[Item]) -> int:
    """How many copies are worth counting: a scalar beside two kernels makes no third copy."""
    largest = max(item.bytes for item in held)
    return sum(item.bytes >= CRUMB * largest for item in held)


def _copies_in_words(parts: list[Part]) -> str:
    """`six copies of 2.87 GiB (weight, gradient, ...)`; each with its size where they are not alike."""
    each = {format_bytes(round(part.bytes / part.count)) for part in parts}
    count = sum(part.count for part in parts)
    if len(parts) < 2 or len(each) > 1:
        return ", ".join(f"{_role_in_words(part)} {format_bytes(part.bytes)}" for part in parts)
    roles = ", ".join(_role_in_words(part) for part in parts)
    return f"{_COUNTS.get(count, str(count))} copies of {each.pop()} ({roles})"


def _role_in_words(part: Part) -> str:
    if part.count == 1:
        return part.role
    plural = f"{part.role.removesuffix('temporary')}temporaries" if part.role.endswith("temporary") else f"{part.role}s"
    return f"{_COUNTS.get(part.count, str(part.count))} {plural}"
