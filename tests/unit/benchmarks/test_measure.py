"""What the accuracy benchmark reads off a profile."""

from __future__ import annotations

from benchmarks.measure import scratch_bytes
from tests.unit.measure.events import Allocator


def test_scratch_is_what_kernels_take_for_themselves_and_give_back():
    allocator = Allocator(recording=True)
    output = allocator.allocate(1000, "dense/MatMul")
    own = allocator.allocate(400, "dense/MatMul", region="temp")
    allocator.free(own)
    allocator.allocate(700, "adam/AssignSubVariableOp_3", region="temp")
    allocator.free(output)
    assert scratch_bytes(allocator.events()).tolist() == [0, 512, 0, 0, 0]
