from dataclasses import replace

from benchmarks.attribution import alive_at_op, compare, measured_sums, sums
from tensorboard_plugin_memest.measure.alive import BEFORE, BEFORE_LAYER
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item
from tests.samples import sample_estimate

PREDICTED = {("dense", "weights"): 600, ("dense", "gradients"): 300, ("conv", "weights"): 100}


def item(layer, category, size):
    return Item(layer, "a", category, "b", None, None, None, size, 2 * size)


def test_the_same_is_the_same():
    found = compare(PREDICTED, PREDICTED)
    assert (found["both"], found["category"], found["gaps"]) == (1, 1, [])
    assert (found["predicted"], found["measured"]) == (1000, 1000)


def test_what_is_missing_and_what_is_too_much_are_gaps_of_the_larger():
    measured = {("dense", "weights"): 600, ("conv", "weights"): 100, ("conv", "activations"): 50}
    found = compare(PREDICTED, measured)
    assert found["both"] == found["category"] == 0.7
    assert found["gaps"] == [("dense", "gradients", 300), ("conv", "activations", -50)]


def test_another_layer_agrees_in_category_only():
    found = compare(PREDICTED, {("dense", "weights"): 700, ("dense", "gradients"): 300})
    assert (found["both"], found["category"]) == (0.9, 1)
    assert sorted(found["gaps"]) == [("conv", "weights", 100), ("dense", "weights", -100)]


def test_bytes_are_those_asked_for_without_constants():
    items = [
        item("dense", Category.WEIGHTS, 300),
        item("dense", Category.WEIGHTS, 512),
        item("a", Category.CONSTANTS, 9),
    ]
    assert sums(items) == {("dense", "weights"): 1024}


def test_what_was_there_before_counts_against_it_unless_every_variable_was_found():
    rest = Item(BEFORE_LAYER, BEFORE, Category.UNATTRIBUTED, BEFORE, None, None, None, 5000, 5000)
    items = [item("dense", Category.WEIGHTS, 512), rest]
    assert measured_sums(items, fed=1000, variables=1) == {("dense", "weights"): 512}
    missing = {("dense", "weights"): 512, (BEFORE_LAYER, "unattributed"): 4000}
    assert measured_sums(items, fed=1000, variables=2) == missing


def test_the_same_op_is_found_whatever_its_root_scope_is_called():
    step = sample_estimate().phases["step"]
    timeline = step.timeline
    op = timeline.op_at(timeline.peak_position)
    assert sums(alive_at_op(step, op)) == sums(step.live_at_peak)
    assert sums(alive_at_op(replace(step, allocations=None), "no/such/op")) == sums(step.live_at_peak)
