"""Memory events made by hand or by hypothesis: an allocator simulated, and what it would have recorded."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tensorboard_plugin_memest.measure.xplane import MemoryEvents


@dataclass
class Block:
    """Memory that is in use."""

    op: str
    requested: int
    held: int


@dataclass
class Allocator:
    """Hands out memory and writes down what a profiler that starts with `record` would see."""

    in_use: int = 0
    blocks: dict[int, Block] = field(default_factory=dict)
    rows: list[tuple[object, ...]] = field(default_factory=list)
    time_ns: int = 0
    recording: bool = False
    free_addresses: list[int] = field(default_factory=list)

    def allocate(
        self,
        requested: int,
        op: str = "",
        *,
        region: str = "output",
        shape: str = "",
        dtype: int = 1,
        thread: str = "tf_Compute/1",
        slack: int = 0,
    ) -> int:
        """The address of `requested` bytes, rounded up to 256 and with `slack` more."""
        held = -(-requested // 256) * 256 + slack
        # Addresses are used again at once, as an allocator does, so that pairing by address is not trivial.
        address = self.free_addresses.pop() if self.free_addresses else 2**46 + 2**20 * len(self.blocks)
        self.blocks[address] = Block(op, requested, held)
        self.in_use += held
        self._note(True, address, self.blocks[address], (op, region, shape, thread), dtype)
        return address

    def free(self, address: int) -> None:
        block = self.blocks.pop(address)
        self.free_addresses.append(address)
        self.in_use -= block.held
        self._note(False, address, block, ("", "", "", "tf_Compute/1"), 0)

    def record(self) -> None:
        """From here on the profiler runs."""
        self.recording = True

    def events(self, allocator: str = "bfc_cpu_allocator_for_gpu") -> MemoryEvents:
        texts: dict[str, int] = {"": 0}

        def numbers(column: int) -> np.ndarray:
            return np.array([row[column] for row in self.rows], np.int64)

        def indexes(column: int) -> np.ndarray:
            return np.array([texts.setdefault(row[column], len(texts)) for row in self.rows], np.int64)

        return MemoryEvents(
            allocator=allocator,
            time_ns=numbers(0),
            allocates=numbers(1) == 1,
            bytes=numbers(2),
            requested_bytes=numbers(3),
            in_use=numbers(4),
            address=numbers(5),
            op=indexes(6),
            region=indexes(7),
            shape=indexes(8),
            thread=indexes(9),
            dtype=numbers(10),
            texts=list(texts),
        )

    def _note(self, allocates: bool, address: int, block: Block, texts: tuple[str, ...], dtype: int) -> None:
        self.time_ns += 10
        if self.recording:
            self.rows.append(
                (self.time_ns, int(allocates), block.held, block.requested, self.in_use, address, *texts, dtype)
            )
