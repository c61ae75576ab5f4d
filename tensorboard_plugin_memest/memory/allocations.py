"""Every buffer of a timeline and how long it is there, so that any moment of it can be looked into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Alive:
    """Buffers that are alive at once and alike in all that is known of them."""

    item: Item
    count: int

    @property
    def bytes(self) -> int:
        """Bytes that all of them hold together."""
        return self.item.bytes * self.count


def alike(items: Iterable[Item]) -> list[Alive]:
    """`items` with those that are alike told together, in their order."""
    return [Alive(item, count) for item, count in Counter(items).items()]


@dataclass(frozen=True)
class Allocations:
    """The buffers of a timeline, in the order in which they come.

    What is known of a buffer is kept once for all that are alike, and its words once for all that share them: there may
    be half a million buffers. Nothing is unpacked before it is asked for.

    Attributes:
        texts: the words.
        kinds: for each kind of buffer the fields of an `Item`, with indexes of `texts` for words.
        kind: for each buffer the index of its kind.
        begin: for each buffer the position in the timeline from which on it is there; never falls.
        length: for how many events of the timeline it is there.
    """

    texts: Sequence[str]
    kinds: Sequence[Sequence[Any]]
    kind: Sequence[int]
    begin: Sequence[int]
    length: Sequence[int]

    @classmethod
    def of(cls, buffers: Iterable[tuple[Item, int, int]]) -> Allocations:
        """Packs buffers, each with the position from which on, and up to which, it is there.

        Those that are not there after any event of the timeline are left out.
        """
        texts: dict[str, int] = {}
        kinds: dict[Item, int] = {}
        # The same object stands for many buffers, and to look it up by what is in it takes long.
        known: dict[int, tuple[int, Item]] = {}
        rows = []
        for item, begin, end in buffers:
            if begin < end:
                if id(item) not in known:
                    known[id(item)] = kinds.setdefault(item, len(kinds)), item
                rows.append((begin, end, known[id(item)][0]))
        rows.sort()
        packed = [
            [
                texts.setdefault(item.layer, len(texts)),
                texts.setdefault(item.name, len(texts)),
                texts.setdefault(item.category.value, len(texts)),
                texts.setdefault(item.role, len(texts)),
                None if item.variable is None else texts.setdefault(item.variable, len(texts)),
                None if item.shape is None else list(item.shape),
                None if item.dtype is None else texts.setdefault(item.dtype, len(texts)),
                item.requested_bytes,
                item.bytes,
            ]
            for item in kinds
        ]
        return cls(
            texts=list(texts),
            kinds=packed,
            kind=[kind for _, _, kind in rows],
            begin=[begin for begin, _, _ in rows],
            length=[end - begin for begin, end, _ in rows],
        )

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[tuple[Item, int, int]]:
        """The buffers, as `of` takes them."""
        items = self.items
        for kind, begin, length in zip(self.kind, self.begin, self.length, strict=True):
            yield items[kind], begin, begin + length

    @property
    def items(self) -> list[Item]:
        """What the buffers are; alike ones once."""
        return [self._item(kind) for kind in self.kinds]

    def alive_at(self, position: int) -> list[Alive]:
        """Everything alive just after the event at `position`, largest buffers first."""
        kind, begin, end = self._columns
        there, counts = np.unique(kind[(begin <= position) & (position < end)], return_counts=True)
        alive = [
            Alive(self._item(self.kinds[number]), count)
            for number, count in zip(there.tolist(), counts.tolist(), strict=True)
        ]
        return sorted(alive, key=lambda one: (-one.item.bytes, one.item.name))

    def items_at(self, position: int) -> tuple[Item, ...]:
        """The same one by one."""
        return tuple(one.item for one in self.alive_at(position) for _ in range(one.count))

    @cached_property
    def _columns(self) -> tuple[Integers, Integers, Integers]:
        """Kind, begin and end of each buffer."""
        begin = np.asarray(self.begin, np.int64)
        return np.asarray(self.kind, np.int64), begin, begin + np.asarray(self.length, np.int64)

    def _item(self, kind: Sequence[Any]) -> Item:
        layer, name, category, role, variable, shape, dtype, requested, held = kind
        texts = self.texts
        return Item(
            layer=texts[layer],
            name=texts[name],
            category=Category(texts[category]),
            role=texts[role],
            variable=None if variable is None else texts[variable],
            shape=None if shape is None else tuple(shape),
            dtype=None if dtype is None else texts[dtype],
            requested_bytes=requested,
            bytes=held,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "texts": list(self.texts),
            "kinds": [list(kind) for kind in self.kinds],
            "kind": list(self.kind),
            # Differences are small numbers, which take less room than the positions themselves.
            "begin": [later - earlier for earlier, later in pairwise([0, *self.begin])],
            "length": list(self.length),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Allocations:
        return cls(
            texts=data["texts"],
            kinds=data["kinds"],
            kind=data["kind"],
            begin=list(accumulate(data["begin"])),
            length=data["length"],
        )
