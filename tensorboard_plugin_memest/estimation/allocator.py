"""TensorFlow's best-fit-with-coalescing (BFC) allocator, replayed without memory.

Source of the rules: `bfc_allocator.cc` in TensorFlow (tsl/framework). Sizes round up to 256 bytes; the smallest free
chunk that is large enough is taken, the lowest address among equals; it is split if it is at least twice the request
or 128 MiB larger, else handed out whole; freed chunks join free neighbours of the same region; a pool that grows asks
for regions that double from 2 MiB.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

ROUNDING = 256
FIRST_REGION = 2 * 2**20
LARGEST_UNSPLIT = 128 * 2**20

GROWTH = "growth"
PREALLOCATED = "preallocated"


# Bytes reserved, and the free chunks as (size, address).
Layout = tuple[int, list[tuple[int, int]]]


def rounded(size: int) -> int:
    """`size` in bytes, up to the next multiple of 256; the allocator hands out no less than 256."""
    return max(ROUNDING, (size + ROUNDING - 1) // ROUNDING * ROUNDING)


@dataclass(eq=False, slots=True)
class _Chunk:
    address: int
    size: int
    used: bool
    before: _Chunk | None
    after: _Chunk | None


class BfcAllocator:
    """Answers requests as the allocator would, and counts.

    Attributes:
        in_use: bytes of all chunks handed out, whole; what `get_memory_info` calls current.
        peak: the highest `in_use` since the last `reset_peak`.
        reserved: bytes of all regions.
    """

    def __init__(self, pool: str = GROWTH, limit: int | None = None) -> None:
        """A pool without any region yet.

        Args:
            pool: `"growth"` (regions double as needed) or `"preallocated"` (one region of `limit` bytes; without a
                limit, one large enough for everything).
            limit: bytes the pool may reserve; None for no limit.
        """
        self.in_use = 0
        self.peak = 0
        self.reserved = 0
        self._limit = limit
        self._grows = pool == GROWTH
        self._reached = 0  # where the highest chunk handed out so far ends; of use where there is one region
        self._next_region = FIRST_REGION if self._grows else (limit or 2**62)
        self._bottom = 2**62  # address of the lowest region
        self._free: list[tuple[int, int]] = []  # (size, address), sorted
        self._chunks: dict[int, _Chunk] = {}  # by address

    @property
    def pool_bytes(self) -> int:
        """Bytes that the pool has needed so far, gaps between chunks included.

        A pool that grows needs all its regions; of a preallocated one it is as much as chunks have reached into.
        """
        return self.reserved if self._grows else max(0, self._reached - self._bottom)

    @property
    def layout(self) -> Layout:
        """All that decides where later requests go; what is used lies in between."""
        return self.reserved, self._free.copy()

    def allocate(self, size: int) -> tuple[int, int]:
        """Takes a chunk for `size` bytes.

        Returns:
            (address, bytes of the chunk).

        Raises:
            MemoryError: the limit leaves no room.
        """
        # Millions of requests are played: what follows looks things up once, and calls nothing for what is in sight.
        need = (size + ROUNDING - 1) // ROUNDING * ROUNDING or ROUNDING
        free = self._free
        position = bisect_left(free, (need, 0))
        if position == len(free):
            self._extend(need)
            position = bisect_left(free, (need, 0))
        held, address = free.pop(position)
        chunk = self._chunks[address]
        if held >= 2 * need or held - need >= LARGEST_UNSPLIT:
            after = chunk.after
            rest = _Chunk(address + need, held - need, False, chunk, after)
            if after is not None:
                after.before = rest
            chunk.after = rest
            chunk.size = need
            self._chunks[rest.address] = rest
            insort(free, (held - need, address + need))
            held = need
        chunk.used = True
        self.in_use += held
        if self.in_use > self.peak:
            self.peak = self.in_use
        if address + held > self._reached:
            self._reached = address + held
        return address, held

    def size_of(self, address: int) -> int:
        """Bytes of the chunk at `address`."""
        return self._chunks[address].size

    def free(self, address: int) -> None:
        """Gives the chunk at `address` back."""
        chunk = self._chunks[address]
        self.in_use -= chunk.size
        chunk.used = False
        free, after, before = self._free, chunk.after, chunk.before
        if after is not None and not after.used:
            del free[bisect_left(free, (after.size, after.address))]
            self._join(chunk, after)
        if before is not None and not before.used:
            del free[bisect_left(free, (before.size, before.address))]
            self._join(before, chunk)
            chunk = before
        insort(free, (chunk.size, chunk.address))

    def reset_peak(self) -> None:
        """Starts a new peak at what is in use now, as `reset_memory_stats` does."""
        self.peak = self.in_use

    def _extend(self, need: int) -> None:
        available = None if self._limit is None else self._limit - self.reserved
        if available is not None and need > available:
            raise MemoryError(f"{need} bytes do not fit: {available} of {self._limit} are left to reserve.")
        grown = False
        while need > self._next_region:
            self._next_region *= 2
            grown = True
        size = self._next_region if available is None else min(self._next_region, available)
        if not grown:
            self._next_region *= 2
        # Each region is a mapping of its own. Linux places mappings downwards, which decides between equal chunks;
        # the gap keeps chunks of neighbouring regions from joining.
        self._bottom -= size + ROUNDING
        address = self._bottom
        self.reserved += size
        self._chunks[address] = _Chunk(address, size, False, None, None)
        insort(self._free, (size, address))

    def _join(self, first: _Chunk, second: _Chunk) -> None:
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        del self._chunks[second.address]
