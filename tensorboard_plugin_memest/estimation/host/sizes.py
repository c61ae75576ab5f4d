"""What a tensor takes in the host's memory beyond its data, and what an element of several takes.

A tensor of TensorFlow's is a handle of 32 bytes in the vector that is the element, a reference-counted buffer object
(`Buffer` in `tensorflow/core/framework/tensor.cc`) and the data, which `port::AlignedMalloc` puts at a multiple of 64
bytes. A buffer of elements has a vector (24 bytes) for each. glibc's malloc adds 8 bytes to every block, rounds up to
16, and loses some more to align; blocks of 128 KiB and more are pages of their own. Together a scalar takes about 200
bytes in a shuffle buffer or a cache, of which 8 are the number; measured are 185 to 216.
"""

from __future__ import annotations

ALIGNMENT = 64
SLOT = 24
# What one alignment costs on average: measured, between nothing and 80, by what happens to lie beside it.
_LOST = 60
_HANDLE = 32
_BUFFER_OBJECT = 40
_FIRST_REGION = 2**20
LARGE = 256 * 1024
_MMAP_THRESHOLD = 128 * 1024
_PAGE = 4096


def tensor_bytes(data: int) -> int:
    """What a tensor of `data` bytes takes when it has memory of its own: its buffer object and its data."""
    return _block(_BUFFER_OBJECT) + (_block(data) + _LOST if data < _MMAP_THRESHOLD else _pages(data))


def shared_tensor_bytes() -> int:
    """What a tensor takes that refers to a part of another's memory."""
    return _block(_BUFFER_OBJECT + 8)


def vector_bytes(tensors: int) -> int:
    """What the vector of an element of `tensors` tensors takes, with its slot in the buffer that keeps it."""
    return SLOT + _block(_HANDLE * tensors)


def pool_books_bytes(large: int) -> int:
    """What TensorFlow's pool of large tensors takes for its own books when it holds `large` bytes.

    With oneDNN, tensors of 256 KiB and more on a CPU come from a BFC allocator (`mkl_cpu_allocator.h`). Its regions
    double, from 1 MiB on, and each has a number of 8 bytes for every 256 bytes of it (`AllocationRegion` in
    `bfc_allocator.h`).
    """
    regions, region = 0, _FIRST_REGION
    while regions < large:
        regions, region = regions + region, 2 * region
    return regions // 256 * 8


def _block(size: int) -> int:
    return max(32, (size + 8 + 15) // 16 * 16)


def _pages(size: int) -> int:
    return (size + ALIGNMENT + 16 + _PAGE - 1) // _PAGE * _PAGE
