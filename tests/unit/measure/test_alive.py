"""What is alive at a moment of a profile: complete, nothing twice, and named as far as can be known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.measure.alive import (
    BEFORE,
    BEFORE_LAYER,
    LOST,
    alive_at,
    as_held,
    find_lives,
    match_before,
    with_rest,
)
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item, by_category
from tensorboard_plugin_memest.memory.timeline import Span
from tests.unit.measure.events import Allocator

MIB = 2**20
NO_BACKWARD = np.zeros(0, np.int64)


def variable(name: str, size: int, category: Category = Category.WEIGHTS, role: str = "weight") -> Item:
    return Item("dense", name, category, role, "dense/kernel", (size // 4,), "float32", size, -(-size // 256) * 256)


def alive(allocator: Allocator, position: int, *, steps=(), backward=NO_BACKWARD, before=(), weight_shapes=()):
    events = allocator.events()
    return alive_at(position, events, find_lives(events), steps, backward, before, weight_shapes)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5000), st.integers(0, 3)), max_size=80), st.integers(0, 40))
def test_at_every_moment_it_is_what_a_simulation_holds(actions, recorded_from):
    allocator = Allocator()
    moments = []
    for number, (frees, size, slack) in enumerate(actions):
        if number == recorded_from:
            allocator.record()
            before = set(allocator.blocks)
            moments = []
        if frees and allocator.blocks:
            address = sorted(allocator.blocks)[size % len(allocator.blocks)]
            allocator.free(address)
            if allocator.recording:
                before.discard(address)
        else:
            allocator.allocate(size, f"op{number}", slack=slack * 256)
        if allocator.recording:
            inside = Counter((b.op, b.held) for a, b in allocator.blocks.items() if a not in before)
            moments.append((allocator.in_use, inside, sum(allocator.blocks[a].held for a in before)))
    for position, (in_use, inside, from_before) in enumerate(moments if allocator.recording else []):
        items = alive(allocator, position)
        assert sum(item.bytes for item in items) == in_use
        assert Counter((item.name, item.bytes) for item in items if item.name != BEFORE) == inside
        assert sum(item.bytes for item in items if item.name == BEFORE) == from_before
        assert [item.bytes for item in items] == sorted((item.bytes for item in items), reverse=True)


def test_what_was_freed_of_before_is_gone_and_what_was_not_stays():
    allocator = Allocator()
    weight = allocator.allocate(3 * MIB)
    other = allocator.allocate(1 * MIB)
    allocator.record()
    allocator.allocate(2 * MIB, "Relu")
    allocator.free(other)
    kernel = variable("dense/kernel", 3 * MIB)
    first = alive(allocator, 0, before=[kernel])
    assert [(item.name, item.bytes) for item in first] == [
        ("dense/kernel", 3 * MIB),
        ("Relu", 2 * MIB),
        (BEFORE, 1 * MIB),
    ]
    second = alive(allocator, 1, before=[kernel])
    assert [(item.name, item.bytes) for item in second] == [("dense/kernel", 3 * MIB), ("Relu", 2 * MIB)]
    allocator.free(weight)
    third = alive(allocator, 2, before=[kernel])
    assert [(item.name, item.bytes) for item in third] == [("Relu", 2 * MIB)]


def updated_variable(copied_in_step: bool = True) -> Allocator:
    """A variable of 3 MiB whose update goes to a new buffer; event 0 makes it, event 1 frees the old one."""
    allocator = Allocator()
    old = allocator.allocate(3 * MIB)
    allocator.allocate(5 * MIB)
    allocator.record()
    allocator.allocate(3 * MIB, "adam/AssignSubVariableOp_1", region="temp" if copied_in_step else "output", slack=512)
    allocator.free(old)
    return allocator


def test_a_variable_that_moves_is_two_tensors_while_it_does_and_one_after():
    allocator = updated_variable()
    kernel = variable("dense/kernel", 3 * MIB)
    steps = [Span("step 0", 0, allocator.time_ns)]
    during = alive(allocator, 0, steps=steps, before=[kernel])
    assert [(item.name, item.category, item.bytes) for item in during] == [
        (BEFORE, Category.UNATTRIBUTED, 5 * MIB),
        ("adam/AssignSubVariableOp_1", Category.TEMPORARIES, 3 * MIB + 512),
        ("dense/kernel", Category.WEIGHTS, 3 * MIB),
    ]
    after = alive(allocator, 1, steps=steps, before=[kernel])
    assert [(item.name, item.category, item.bytes) for item in after] == [
        (BEFORE, Category.UNATTRIBUTED, 5 * MIB),
        ("dense/kernel", Category.WEIGHTS, 3 * MIB + 512),
    ]


def test_without_steps_only_an_assign_s_tensor_is_the_moved_variable():
    kernel = variable("dense/kernel", 3 * MIB)
    after = alive(updated_variable(), 1, before=[kernel])
    assert ("dense/kernel", 3 * MIB + 512) in [(item.name, item.bytes) for item in after]

    allocator = Allocator()
    old = allocator.allocate(3 * MIB)
    allocator.allocate(5 * MIB)
    allocator.record()
    allocator.allocate(3 * MIB, "lion/Sub", slack=512)
    allocator.free(old)
    after = alive(allocator, 1, before=[kernel])
    assert ("lion/Sub", 3 * MIB + 512) in [(item.name, item.bytes) for item in after]


def test_variables_are_dropped_rather_than_counted_beyond_what_is_left():
    allocator = Allocator()
    old = allocator.allocate(3 * MIB)
    allocator.allocate(2 * MIB)
    allocator.record()
    allocator.free(old)
    big, small = variable("big", 3 * MIB), variable("small", 2 * MIB)
    items = alive(allocator, 0, before=[small, big])
    assert [(item.name, item.bytes) for item in items] == [("small", 2 * MIB)]


def test_categories_by_use_name_and_time():
    allocator = Allocator()
    allocator.record()
    allocator.allocate(100, "GatherV2", thread="tf_data_private_threadpool/5")
    allocator.allocate(200, "IteratorGetNext", shape="[8,16]")
    begin = allocator.time_ns + 1
    kept = allocator.allocate(300, "StatefulPartitionedCall/conv/Relu", shape="[8,3]", dtype=1)
    dies = allocator.allocate(400, "StatefulPartitionedCall/conv/Cast", dtype=19)
    scratch = allocator.allocate(500, "StatefulPartitionedCall/conv/convolution", region="temp", thread="tf_Compute/2")
    element = allocator.allocate(550, "StatefulPartitionedCall/lstm/TensorListFromTensor", region="temp", shape="[8,4]")
    allocator.free(dies)
    backward = allocator.time_ns + 5
    allocator.allocate(600, "StatefulPartitionedCall/gradient_tape/dense/MatMul_1", shape="[25,6]")
    allocator.allocate(700, "StatefulPartitionedCall/gradient_tape/dense/MatMul", shape="[8,25]")
    update = allocator.allocate(800, "while/body/_1/while/StatefulPartitionedCall_3/adam/Square_4")
    allocator.allocate(900, "StatefulPartitionedCall/adam/AssignSubVariableOp_4", region="temp")
    allocator.allocate(1000)
    peak = len(allocator.rows) - 1
    for address in (kept, scratch, element, update):
        allocator.free(address)
    end = allocator.time_ns + 1
    allocator.allocate(1100, "after/Mul")

    steps = [Span("step 0", begin, end)]
    at = {"steps": steps, "backward": np.array([backward]), "weight_shapes": [(25, 6)]}
    told = {item.requested_bytes: item for item in alive(allocator, peak, **at)}
    assert {size: (item.category, item.role, item.name) for size, item in told.items()} == {
        100: (Category.INPUTS, "GatherV2 output", "GatherV2"),
        200: (Category.INPUTS, "IteratorGetNext output", "IteratorGetNext"),
        300: (Category.ACTIVATIONS, "Relu output", "conv/Relu"),
        500: (Category.WORKSPACE, "convolution scratch", "conv/convolution"),
        550: (Category.ACTIVATIONS, "TensorListFromTensor output", "lstm/TensorListFromTensor"),
        600: (Category.GRADIENTS, "gradient", "gradient_tape/dense/MatMul_1"),
        700: (Category.TEMPORARIES, "MatMul output", "gradient_tape/dense/MatMul"),
        800: (Category.TEMPORARIES, "Square output", "adam/Square_4"),
        900: (Category.TEMPORARIES, "variable copy", "adam/AssignSubVariableOp_4"),
        1000: (Category.UNATTRIBUTED, "unnamed tensor", "(no op)"),
    }
    assert told[300].shape == (8, 3)
    assert told[300].dtype == "float32"
    assert told[300].bytes == 512
    assert told[200].layer == "(input)"
    assert told[300].layer == "(step)"
    before_the_end_of_the_forward_pass = {item.requested_bytes: item for item in alive(allocator, 3, **at)}
    assert before_the_end_of_the_forward_pass[400].category is Category.TEMPORARIES
    assert before_the_end_of_the_forward_pass[400].dtype == "float16"
    outside = {item.requested_bytes: item for item in alive(allocator, len(allocator.rows) - 1, **at)}
    assert outside[1100].category is Category.UNATTRIBUTED
    assert 300 not in outside


def test_a_variable_of_another_type_or_shape_keeps_its_text_unread():
    allocator = Allocator()
    allocator.record()
    allocator.allocate(10, "a", shape="[?,3]", dtype=0)
    allocator.allocate(10, "b", shape="[]", dtype=9999)
    by_name = {item.name: item for item in alive(allocator, 1)}
    assert by_name["a"].shape is None
    assert by_name["a"].dtype is None
    assert by_name["b"].shape == ()
    assert by_name["b"].dtype is None


def test_a_profile_that_lacks_events_is_not_told_apart():
    allocator = Allocator()
    allocator.record()
    lost = allocator.allocate(1 * MIB, "a")
    allocator.allocate(1 * MIB, "b")
    allocator.recording = False
    allocator.free(lost)
    allocator.recording = True
    allocator.allocate(512, "c")
    (item,) = alive(allocator, 2)
    assert (item.name, item.bytes, item.category) == (LOST, 1 * MIB + 512, Category.UNATTRIBUTED)


def test_weights_and_then_slots_are_matched_as_whole_groups():
    weights = [variable("a", 3 * MIB), variable("b", 1 * MIB)]
    momentums = [variable("ma", 3 * MIB, Category.OPTIMIZER_SLOTS, "momentum"),
                 variable("mb", 1 * MIB, Category.OPTIMIZER_SLOTS, "momentum")]  # fmt: skip
    # Slots first in the list must not take what the weights hold.
    variables = [*momentums, *weights]
    assert match_before(variables, 8 * MIB) == [*weights, *momentums]
    assert match_before(variables, 8 * MIB - 1) == weights
    assert match_before(variables, 4 * MIB - 1) == []
    assert match_before([], 8 * MIB) == []


def test_variables_lie_in_the_chunks_of_this_run_not_in_those_that_were_estimated():
    allocator = Allocator()
    kept = allocator.allocate(2 * MIB, "a", slack=MIB)
    freed = allocator.allocate(1 * MIB, "b", slack=512)
    before_bytes = allocator.in_use
    allocator.record()
    allocator.free(freed)
    allocator.allocate(256, "c")
    assert kept in allocator.blocks
    events = allocator.events()
    large, small = variable("a", 2 * MIB), variable("b", MIB)

    def held(first, second):
        return [item.bytes for item in as_held([first, second], events, find_lives(events), before_bytes)]

    # What the profile frees it tells the size of; of the other the estimate's is kept, where there is room for it.
    assert held(large, small) == [2 * MIB, MIB + 512]
    assert held(replace(large, bytes=3 * MIB), replace(small, bytes=3 * MIB)) == [3 * MIB, MIB + 512]
    assert held(replace(large, bytes=4 * MIB), small) == [2 * MIB, MIB + 512]


def test_the_rest_is_one_item_that_makes_the_sum_right():
    items = with_rest([variable("a", 1000), variable("b", 3 * MIB)], 4 * MIB)
    assert [item.name for item in items] == ["b", BEFORE, "a"]
    assert sum(item.bytes for item in items) == 4 * MIB
    assert items[1].layer == BEFORE_LAYER
    assert by_category(items) == {Category.WEIGHTS: 3 * MIB + 1024, Category.UNATTRIBUTED: MIB - 1024}
    assert with_rest([variable("a", 1024)], 1024) == (variable("a", 1024),)
