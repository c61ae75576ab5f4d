"""What happens to device memory, one event after another: the common tongue of execution and allocator."""

from __future__ import annotations

from dataclasses import dataclass

from tensorboard_plugin_memest.estimation.tag import Tag

ALLOCATE = "allocate"
FREE = "free"
RELABEL = "relabel"


@dataclass(eq=False, slots=True)
class Buffer:
    """A piece of device memory.

    Attributes:
        bytes: bytes asked for.
        references: how many still need it: readers, and the variable whose value it is.
        is_resident: whether it is a variable's value or a constant, which stays between steps.
        is_scratch: whether it is a kernel's workspace, gone when the kernel ends.
    """

    bytes: int
    references: int = 0
    is_resident: bool = False
    is_scratch: bool = False


class TensorList(Buffer):
    """A list of tensors: no memory of its own, but it holds its elements'."""

    __slots__ = ("elements",)

    def __init__(self, elements: list[Buffer | None]) -> None:
        super().__init__(0)
        self.elements = elements


@dataclass(slots=True)
class Event:
    """A buffer is allocated, freed, or from now on holds something else.

    Nobody changes one. It is not frozen because that would make it three times as slow to make, and there are many.

    Attributes:
        kind: ALLOCATE, FREE or RELABEL.
        buffer: the buffer.
        op: name of the op that is running.
        tag: what the buffer holds from now on; None when it is freed.
    """

    kind: str
    buffer: Buffer
    op: str
    tag: Tag | None = None
