"""Every buffer of a profile: what it is, and that they add up at every moment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.measure import profile as module
from tensorboard_plugin_memest.measure.alive import BEFORE
from tensorboard_plugin_memest.measure.xplane import Execution, Profile
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.measured import MeasuredProfile
from tests.samples import sample_estimate
from tests.unit.measure.events import Allocator

KERNEL = 576  # the convolution's kernel, which the sample estimate has once, in 768 bytes


def measured(allocator: Allocator, *, steps=((0, 10**9),), backward=(), estimate=None) -> MeasuredProfile:
    marked = [Execution("train", number, start, end) for number, (start, end) in enumerate(steps)]
    profile = Profile("worker", "now", [allocator.events()], marked, [], np.array(backward, np.int64))
    (found,) = module.measured_profiles(profile, estimate)
    return found


def names(found: MeasuredProfile, position: int) -> dict[str, int]:
    assert found.allocations is not None
    return {item.name: item.bytes for item in found.allocations.items_at(position)}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7), st.sampled_from([100, 300, KERNEL])), max_size=40))
def test_at_every_moment_the_buffers_are_the_bytes_in_use(script):
    allocator = Allocator()
    held = [allocator.allocate(size) for size in (KERNEL, 300, 5000)]
    allocator.record()
    held.append(allocator.allocate(1000, "first"))
    for allocates, number, size in script:
        if allocates or not held:
            held.append(allocator.allocate(size, f"op_{number}", region="temp" if number == 1 else "output"))
        else:
            allocator.free(held.pop(number % len(held)))
    found = measured(allocator, steps=[(0, 60), (60, 200)], estimate=sample_estimate())
    for position, live in enumerate(found.timeline.live_bytes):
        assert sum(item.bytes for item in found.allocations.items_at(position)) == live


def test_each_buffer_is_what_its_op_and_its_life_say():
    allocator = Allocator()
    allocator.record()
    kept = allocator.allocate(100, "dense/Relu", shape="[25]")
    scratch = allocator.allocate(300, "dense/Conv2D", region="temp")
    allocator.free(scratch)
    backward = allocator.allocate(200, "gradient_tape/dense/MatMul", shape="[50]")
    allocator.free(kept)
    allocator.free(backward)
    found = measured(allocator, backward=[35])
    assert found.allocations is not None
    told = {item.name: (item.category, item.role, item.shape, begin, end) for item, begin, end in found.allocations}
    assert told == {
        "dense/Relu": (Category.ACTIVATIONS, "Relu output", (25,), 0, 4),
        "dense/Conv2D": (Category.WORKSPACE, "Conv2D scratch", None, 1, 2),
        "gradient_tape/dense/MatMul": (Category.TEMPORARIES, "MatMul output", (50,), 3, 5),
    }


def test_alike_buffers_of_different_fates_are_told_apart():
    allocator = Allocator()
    allocator.record()
    short = allocator.allocate(100, "dense/Relu")
    allocator.free(short)
    kept = allocator.allocate(100, "dense/Relu")
    allocator.allocate(8, "gradient_tape/x")
    allocator.free(kept)
    found = measured(allocator, backward=[40])
    assert found.allocations is not None
    categories = [item.category for item, _, _ in found.allocations if item.name == "dense/Relu"]
    assert categories == [Category.TEMPORARIES, Category.ACTIVATIONS]


def test_a_variable_that_moves_stays_one():
    allocator = Allocator()
    old = allocator.allocate(KERNEL)
    allocator.allocate(5000)
    allocator.record()
    allocator.allocate(KERNEL, "AssignVariableOp", slack=256)
    allocator.free(old)
    allocator.allocate(10, "later")
    found = measured(allocator, steps=[(0, 45)], estimate=sample_estimate())
    kernel = "sequential/conv2d/kernel"
    assert names(found, 0)[kernel] in (768, 1024)
    assert names(found, 1) == {kernel: 1024, BEFORE: 5120}
    assert names(found, 2)[kernel] == 1024


def test_variables_that_come_in_the_profile_are_told_by_their_size():
    allocator = Allocator()
    allocator.record()
    allocator.allocate(KERNEL, "AssignVariableOp")
    allocator.allocate(10, "later")
    found = measured(allocator, steps=[(0, 15)], estimate=sample_estimate())
    assert found.allocations is not None
    assert next(item.variable for item in found.allocations.items_at(1)) == "sequential/conv2d/kernel"


def test_what_was_there_before_and_is_freed_is_there_until_then():
    allocator = Allocator()
    blocks = [allocator.allocate(1000), allocator.allocate(3000)]
    allocator.record()
    for block in blocks:
        allocator.free(block)
    found = measured(allocator)
    assert names(found, 0) == {BEFORE: 3072}
    assert names(found, 1) == {}


def test_a_profile_that_lacks_events_tells_only_of_its_peak():
    allocator = Allocator()
    allocator.record()
    allocator.allocate(100, "one")
    lost = allocator.allocate(100, "lost")
    allocator.allocate(100, "three")
    allocator.free(lost)
    del allocator.rows[1]
    found = measured(allocator)
    assert found.allocations is None
    assert found.alive_at(0) is None
    peak = found.timeline.peak_position
    assert peak is not None
    alive = found.alive_at(peak)
    assert alive is not None
    assert sum(one.bytes for one in alive) == found.timeline.peak_bytes


@pytest.mark.parametrize("position", [0, 1])
def test_the_peak_is_told_as_everywhere_else(position):
    allocator = Allocator()
    allocator.record()
    block = allocator.allocate(100, "one")
    allocator.free(block)
    found = measured(allocator)
    one = replace(found, live_at_peak=(replace(found.live_at_peak[0], role="told"),))
    alive = one.alive_at(position)
    assert [item.item.role for item in alive or []] == (["told"] if position == 0 else [])
