"""What passes from one op of a pipeline to the next, and the books in which ops enter what they keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tensorboard_plugin_memest.estimation.host.pipeline import Component
from tensorboard_plugin_memest.estimation.host.sizes import LARGE, SLOT, tensor_bytes, vector_bytes
from tensorboard_plugin_memest.memory.host import Stage

# More elements than anything has: the length of a dataset that repeats for ever.
INFINITE = 2**62
# What is taken for what cannot be known; each use becomes a sentence among the assumptions.
UNKNOWN_DIMENSION = 256
UNKNOWN_TEXT = 100
UNKNOWN_ELEMENTS = 1000

_ITEM_SIZES = {
    "bool": 1,
    "half": 2,
    "bfloat16": 2,
    "string": 24,
    "variant": 0,
    "resource": 0,
    "complex64": 8,
    "complex128": 16,
}


@dataclass(frozen=True)
class Piece:
    """One tensor of an element.

    Attributes:
        data: bytes of its data.
        own: bytes that whoever keeps it adds to the memory in use: all of it for a new tensor, none where something
            before keeps it anyway.
    """

    data: int
    own: int


@dataclass(frozen=True)
class Flow:
    """The elements that leave an op.

    Attributes:
        elements: how many; `INFINITE` without end; None where it is not known.
        pieces: the tensors of each.
        making: the most memory in use while one is made, its own included, buffers apart.
        rows: examples in each element after batching; None before.
        inner: for elements that are datasets, such as windows: what flows out of one.
    """

    elements: int | None
    pieces: tuple[Piece, ...]
    making: int
    rows: int | None = None
    inner: Flow | None = None

    @property
    def own_bytes(self) -> int:
        """What one element adds to the memory in use.

        The vector of an element whose tensors are shared finds room between the blocks of those, left by aligning.
        """
        if not any(piece.own for piece in self.pieces):
            return SLOT
        return vector_bytes(len(self.pieces)) + sum(piece.own for piece in self.pieces)

    @property
    def element_bytes(self) -> int:
        """What one element takes, shared or not."""
        return vector_bytes(len(self.pieces)) + sum(tensor_bytes(piece.data) for piece in self.pieces)


@dataclass
class Books:
    """What the ops of one pipeline keep.

    Attributes:
        cores: how many calls run side by side where AUTOTUNE decides.
        rewritten: TensorFlow rewrites the pipeline before it runs it (the default optimizations are on).
        slack: what malloc may hold unused beside all that.
        large: what of all that lies in tensors large enough for TensorFlow's own pool.
        unknown_elements: how many elements a source of unknown length is taken to have.
    """

    cores: int
    rewritten: bool = True
    unknown_elements: int = UNKNOWN_ELEMENTS
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counted: dict[int, Flow] = field(default_factory=dict)
    constants: set[int] = field(default_factory=set)
    slack: int = 0
    large: int = 0

    def note(self, sentence: str) -> None:
        """Enters an assumption, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def enter(self, name: str, held: int, elements: int | None, flow: Flow, reason: str) -> None:
        """Enters a stage."""
        if max((piece.data for piece in flow.pieces), default=held) >= LARGE:
            self.large += held
        self.stages.append(Stage(name, held, elements, flow.element_bytes, reason))

    def count(self, flow: Flow, stage: str) -> int:
        """How many elements `flow` has, or is taken to have."""
        if flow.elements is not None and flow.elements < INFINITE:
            return flow.elements
        why = "without end" if flow.elements == INFINITE else "of unknown length"
        self.note(
            f"What reaches {stage} is {why}; {self.unknown_elements:,} elements are counted there. "
            "Pass elements=... to say how many there are."
        )
        return self.unknown_elements


def data_bytes(component: Component, rows: int | None, stage: str, books: Books) -> int:
    """The data of one tensor of an element, with unknown dimensions taken for what the notes say.

    Args:
        component: what is known of it.
        rows: what an unknown first dimension is: the size of the batch it was made from.
        stage: for the notes.
        books: where the notes go.
    """
    if component.dtype in ("variant", "resource"):
        if component.dataset is None:
            books.note(f"What is inside the {component.dtype} elements of {stage} is not known, and not counted.")
        return 0
    if component.shape is None:
        books.note(f"An element of {stage} has no known shape; {UNKNOWN_DIMENSION} values are taken for it.")
        return UNKNOWN_DIMENSION * item_size(component.dtype)
    shape = list(component.shape)
    if shape and shape[0] is None and rows is not None:
        shape[0] = rows
    if None in shape:
        books.note(
            f"Unknown dimensions of {stage} ({_written(component)}) are taken for {UNKNOWN_DIMENSION}. "
            "Pass sample=True to look at one element, or tell them with tf.ensure_shape."
        )
    if component.ragged or component.sparse:
        books.note(
            f"The {'ragged' if component.ragged else 'sparse'} tensors of {stage} are counted as if they were full."
        )
    size = math.prod(UNKNOWN_DIMENSION if one is None else one for one in shape)
    if component.dtype == "string":
        books.note(f"Each text of {stage} is taken for {UNKNOWN_TEXT} bytes long.")
        return size * (item_size("string") + UNKNOWN_TEXT)
    return size * item_size(component.dtype)


def item_size(dtype: str) -> int:
    """Bytes of one value."""
    if dtype in _ITEM_SIZES:
        return _ITEM_SIZES[dtype]
    bits = int("".join(filter(str.isdigit, dtype.split("_")[0])) or 32)
    return max(1, bits // 8)


def fresh(sizes: Sequence[int]) -> tuple[Piece, ...]:
    """New tensors of so many bytes each."""
    return tuple(Piece(size, tensor_bytes(size)) for size in sizes)


def _written(component: Component) -> str:
    dimensions = ", ".join("?" if one is None else str(one) for one in component.shape or ())
    return f"{component.dtype} [{dimensions}]"
