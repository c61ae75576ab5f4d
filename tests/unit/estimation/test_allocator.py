"""The replayed allocator: its rules worked by hand, and TensorFlow's own beside it, byte for byte."""

from __future__ import annotations

import json
import random

import pytest

from tensorboard_plugin_memest.estimation.allocator import PREALLOCATED, BfcAllocator, rounded
from tests.integration.processes import answer_of

MIB = 2**20


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 256), (1, 256), (255, 256), (256, 256), (257, 512), (512, 512), (2**33 + 1, 2**33 + 256)]
)
def test_sizes_round_up_to_256(size, expected):
    assert rounded(size) == expected


def test_the_first_region_is_2_mib_and_regions_double():
    allocator = BfcAllocator()
    assert allocator.reserved == 0
    allocator.allocate(1)
    assert allocator.reserved == 2 * MIB
    allocator.allocate(2 * MIB)  # what is left of the first region is too small
    assert allocator.reserved == 2 * MIB + 4 * MIB
    allocator.allocate(4 * MIB)
    assert allocator.reserved == 2 * MIB + 4 * MIB + 8 * MIB


def test_a_request_beyond_the_next_region_doubles_it_until_it_fits_and_the_one_after_is_no_larger():
    allocator = BfcAllocator()
    allocator.allocate(100 * MIB)
    assert allocator.reserved == 128 * MIB
    allocator.allocate(128 * MIB)
    assert allocator.reserved == 256 * MIB
    allocator.allocate(200 * MIB)
    assert allocator.reserved == 256 * MIB + 256 * MIB


def test_a_chunk_is_split_from_twice_the_request_on():
    allocator = BfcAllocator()
    assert allocator.allocate(MIB)[1] == MIB
    assert allocator.allocate(MIB)[1] == MIB
    whole = BfcAllocator()
    # 2 MiB are less than twice the request, so all of them are handed out.
    assert whole.allocate(MIB + 1)[1] == 2 * MIB
    assert whole.in_use == 2 * MIB


def test_a_chunk_128_mib_larger_than_the_request_is_split_whatever_their_ratio():
    allocator = BfcAllocator()
    whole, _ = allocator.allocate(512 * MIB)
    allocator.free(whole)
    address, size = allocator.allocate(384 * MIB + 256)
    assert size == 512 * MIB, "less than 128 MiB are over"
    allocator.free(address)
    assert allocator.allocate(384 * MIB)[1] == 384 * MIB


def test_the_smallest_chunk_that_fits_is_taken_the_lowest_among_equals():
    allocator = BfcAllocator()
    addresses = [allocator.allocate(size)[0] for size in (1024, 256, 768, 256, 768, 256)]
    for hole in (4, 0, 2):
        allocator.free(addresses[hole])
    # Holes of 1024, 768 and 768 bytes.
    assert allocator.allocate(700) == (addresses[2], 768)
    assert allocator.allocate(700) == (addresses[4], 768)
    assert allocator.allocate(700) == (addresses[0], 1024)


def test_freed_chunks_join_free_neighbours_on_both_sides():
    allocator = BfcAllocator()
    first, middle, last, _ = (allocator.allocate(256)[0] for _ in range(4))
    allocator.free(first)
    allocator.free(last)
    allocator.free(middle)
    assert allocator.allocate(768) == (first, 768)


def test_chunks_of_different_regions_do_not_join():
    allocator = BfcAllocator()
    one, _ = allocator.allocate(2 * MIB)
    other, _ = allocator.allocate(4 * MIB)
    allocator.free(one)
    allocator.free(other)
    allocator.allocate(6 * MIB)
    assert allocator.reserved == 2 * MIB + 4 * MIB + 8 * MIB


def test_in_use_and_peak_count_whole_chunks():
    allocator = BfcAllocator()
    address, size = allocator.allocate(MIB + 1)
    assert (allocator.in_use, allocator.peak) == (size, size) == (2 * MIB, 2 * MIB)
    allocator.free(address)
    assert (allocator.in_use, allocator.peak) == (0, 2 * MIB)
    allocator.reset_peak()
    assert allocator.peak == 0
    allocator.allocate(1)
    assert allocator.peak == 256


def test_a_preallocated_pool_is_one_region():
    allocator = BfcAllocator(PREALLOCATED, 1024 * MIB)
    assert allocator.allocate(300 * MIB)[1] == 300 * MIB
    assert allocator.reserved == 1024 * MIB
    # 724 MiB are left in one piece, which is less than twice the request but 128 MiB more.
    assert allocator.allocate(400 * MIB)[1] == 400 * MIB
    # 324 MiB are left: less than twice the request, and less than 128 MiB over.
    assert allocator.allocate(200 * MIB)[1] == 324 * MIB


def test_a_preallocated_pool_without_a_limit_holds_anything():
    allocator = BfcAllocator(PREALLOCATED)
    assert allocator.allocate(2**45)[1] == 2**45
    assert allocator.allocate(2**45)[1] == 2**45


@pytest.mark.parametrize("pool", ["growth", "preallocated"])
def test_what_does_not_fit_the_limit_is_refused(pool):
    allocator = BfcAllocator(pool, 10 * MIB)
    allocator.allocate(6 * MIB)
    with pytest.raises(MemoryError, match=r"4194560 bytes do not fit"):
        allocator.allocate(4 * MIB + 1)


def test_a_growing_pool_takes_what_the_limit_leaves():
    allocator = BfcAllocator(limit=7 * MIB)
    allocator.allocate(2 * MIB)
    allocator.allocate(3 * MIB)
    assert allocator.reserved == 2 * MIB + 4 * MIB
    allocator.allocate(MIB)
    assert allocator.reserved == 7 * MIB


# Requests, and the position among what is alive of the tensor to free after each, or None.
PROGRAM = """
    import json, sys
    import tensorflow as tf

    current, peak = [], []
    alive = []
    for size, victim in json.loads(sys.argv[1]):
        shape = tf.constant([size])
        alive.append(tf.raw_ops.Empty(shape=shape, dtype=tf.uint8, init=False))
        del shape
        if victim is not None:
            del alive[victim]
        info = tf.config.experimental.get_memory_info("CPU:0")
        current.append(info["current"])
        peak.append(info["peak"])
    print(json.dumps([current, peak]))
"""


def random_requests(seed: int, count: int) -> list[tuple[int, int | None]]:
    """Sizes over all magnitudes, so that chunks are split, handed out whole and joined in all ways."""
    draw = random.Random(seed)
    requests, alive = [], 0
    for _ in range(count):
        kind = draw.random()
        if kind < 0.5:
            size = draw.randint(1, 4096)
        elif kind < 0.93:
            size = int(2 ** draw.uniform(12, 23))
        else:
            size = int(2 ** draw.uniform(23, 28.5))
        alive += 1
        victim = draw.randrange(alive) if draw.random() < (0.75 if alive < 60 else 1) else None
        alive -= victim is not None
        requests.append((size, victim))
    return requests


@pytest.mark.parametrize("seed", [0, 1])
def test_equals_tensorflows_allocator_after_each_of_thousands_of_steps(seed):
    requests = random_requests(seed, 3000)
    measured = answer_of(PROGRAM, json.dumps(requests), environment={"TF_CPU_ALLOCATOR_USE_BFC": "1"})
    allocator = BfcAllocator()
    held: list[int] = []
    replayed: tuple[list[int], list[int]] = ([], [])
    for size, victim in requests:
        # The op's shape is a tensor too, and lives as long as the op runs.
        shape, _ = allocator.allocate(4)
        held.append(allocator.allocate(size)[0])
        allocator.free(shape)
        if victim is not None:
            allocator.free(held.pop(victim))
        replayed[0].append(allocator.in_use)
        replayed[1].append(allocator.peak)
    first_difference = next((step for step in range(len(requests)) if replayed[0][step] != measured[0][step]), None)
    assert first_difference is None, (first_difference, requests[: first_difference + 1][-1])
    assert replayed[1] == measured[1]


def test_a_growing_pool_needs_its_regions_whatever_is_in_them():
    allocator = BfcAllocator()
    assert allocator.pool_bytes == 0
    address, _ = allocator.allocate(100 * MIB)
    assert allocator.pool_bytes == 128 * MIB
    allocator.free(address)
    assert allocator.pool_bytes == 128 * MIB


@pytest.mark.parametrize("limit", [None, 1024 * MIB])
def test_a_preallocated_pool_needs_what_chunks_reached_into_gaps_included(limit):
    allocator = BfcAllocator(PREALLOCATED, limit)
    assert allocator.pool_bytes == 0
    first, _ = allocator.allocate(30 * MIB)
    allocator.allocate(10 * MIB)
    allocator.free(first)
    # It does not fit into the gap, so it goes behind.
    allocator.allocate(31 * MIB)
    assert allocator.in_use == 41 * MIB
    assert allocator.pool_bytes == (30 + 10 + 31) * MIB
    allocator.allocate(MIB)
    assert allocator.pool_bytes == (30 + 10 + 31) * MIB
