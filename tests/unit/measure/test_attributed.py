"""What was alive, with layers and variables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorboard_plugin_memest.measure.attributed import attributed
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import RESULT, Item
from tensorboard_plugin_memest.memory.whose import Whose
from tests.samples import CONV, DENSE, KERNEL, KERNEL_BYTES, kernel_item, sample_estimate


def seen(name, category=Category.TEMPORARIES, requested=100, size=256, *, layer="(step)", shape=None, role="output"):
    return Item(layer, name, category, role, None, shape, "float32", requested, size)


def test_ops_of_the_estimate_and_ops_by_their_names_get_their_layers():
    live = (
        seen("adam_2/Square_4", requested=KERNEL_BYTES, size=KERNEL_BYTES, shape=KERNEL),
        seen("sequential_3/conv2d_1/Shape"),
        seen("x", Category.INPUTS, layer="(input)"),
    )
    square, shape, given = attributed(live, "step", sample_estimate())
    assert (square.layer, square.role, square.variable) == (DENSE, "update temporary", f"{DENSE}/kernel")
    assert square.bytes == KERNEL_BYTES
    assert (shape.layer, shape.category) == (CONV, Category.ACTIVATIONS)
    assert given == live[2]


def test_scratch_is_the_op_s_whoever_takes_over_its_result():
    heir = Whose(DENSE, Category.TEMPORARIES, "ReluGrad output, backward")
    step = replace(
        sample_estimate().phases["step"],
        owners={"net/conv/MatMul": Whose(CONV, Category.TEMPORARIES, "MatMul output, backward")},
        heirs={"net/conv/MatMul": heir},
    )
    estimate = replace(sample_estimate(), phases={"step": step})
    live = seen("net/conv/MatMul"), seen("net/conv/MatMul", Category.WORKSPACE, role="MatMul scratch")
    result, scratch = sorted(attributed(live, "step", estimate), key=lambda item: item.category is Category.WORKSPACE)
    assert (result.layer, scratch.layer) == (DENSE, CONV)
    assert (scratch.category, scratch.role) == (Category.WORKSPACE, "MatMul scratch")


def test_without_an_estimate_scopes_are_all_there_is_and_categories_stay():
    (one,) = attributed([seen("net/block/conv/Relu", Category.TEMPORARIES)], None, None)
    assert (one.layer, one.category) == ("net/block/conv", Category.TEMPORARIES)


def test_a_variable_is_told_by_its_size_once():
    new = seen("(no op)", Category.UNATTRIBUTED, KERNEL_BYTES, KERNEL_BYTES + 512)
    there = kernel_item("weight", Category.WEIGHTS)
    found = attributed([there, new, new, new], "step", sample_estimate())
    assert {item.name for item in found} == {
        there.name, "adam/dense_kernel_momentum", "adam/dense_kernel_velocity", "(no op)",
    }  # fmt: skip
    assert [item.bytes for item in found] == [KERNEL_BYTES + 512] * 3 + [KERNEL_BYTES]


@pytest.mark.parametrize("spare", [0, 1536])
def test_the_block_of_a_compiled_step_is_taken_apart_and_keeps_its_bytes(spare):
    estimate = sample_estimate()
    step = estimate.phases["step"]
    result = seen("tuple", role=RESULT, layer=DENSE)
    step = replace(step, live_at_peak=(*step.live_at_peak, result))
    subject = replace(estimate.subject, mode="xla")
    estimate = replace(estimate, subject=subject, phases={**estimate.phases, "step": step})
    outside = (Category.WEIGHTS, Category.OPTIMIZER_SLOTS, Category.INPUTS, Category.UNATTRIBUTED, Category.CONSTANTS)
    inside = [item for item in step.live_at_peak if item.category not in outside and item is not result]
    assert len(inside) > 2
    requested = sum(item.requested_bytes for item in inside)
    size = sum(item.bytes for item in inside) + spare
    block = seen("(no op)", Category.UNATTRIBUTED, requested, size)
    found = attributed([block], "step", estimate)
    assert sum(item.bytes for item in found) == size
    assert {item.name for item in found} - {item.name for item in inside} == (
        {"XLA's temporary memory, unused part"} if spare else set()
    )
    # A block of another size is of another program.
    other = replace(block, requested_bytes=requested + 1)
    assert attributed([other], "step", estimate) == (other,)
    # Nor has a step that was not compiled such a block.
    as_graph = replace(estimate, subject=replace(subject, mode="graph"))
    assert attributed([block], "step", as_graph) == (block,)
