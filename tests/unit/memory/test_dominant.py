"""What holds most of the memory, in words."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.dominant import dominant
from tensorboard_plugin_memest.memory.item import Item
from tests.samples import KERNEL, KERNEL_BYTES, step_items


def tensor(layer: str, size: int, category: Category = Category.ACTIVATIONS) -> Item:
    return Item(layer, "op", category, "Relu output", None, None, None, size, size)


def test_the_kernel_of_the_example_and_its_copies():
    items = step_items()
    total = sum(item.bytes for item in items)
    (kernel,) = dominant(items)
    assert (kernel.name, kernel.layer, kernel.shape) == ("sequential/dense/kernel", "sequential/dense", KERNEL)
    assert kernel.bytes == 6 * KERNEL_BYTES
    assert kernel.share == pytest.approx(6 * KERNEL_BYTES / total)
    assert [(part.role, part.category, part.count, part.bytes) for part in kernel.parts] == [
        ("weight", Category.WEIGHTS, 1, KERNEL_BYTES),
        ("gradient", Category.GRADIENTS, 1, KERNEL_BYTES),
        ("momentum", Category.OPTIMIZER_SLOTS, 1, KERNEL_BYTES),
        ("velocity", Category.OPTIMIZER_SLOTS, 1, KERNEL_BYTES),
        ("update temporary", Category.TEMPORARIES, 2, 2 * KERNEL_BYTES),
    ]
    assert sum(part.share for part in kernel.parts) == pytest.approx(kernel.share)
    assert kernel.sentence == (
        "sequential/dense/kernel [6019376, 128] is 99.9 % of the peak: six copies of 2.87 GiB "
        "(weight, gradient, momentum, velocity, two update temporaries)."
    )


def test_tensors_of_no_variable_are_told_by_layer():
    found = dominant([tensor("conv", 60), tensor("conv", 20, Category.WORKSPACE), tensor("dense", 20)])
    assert [(entry.name, entry.shape, entry.bytes) for entry in found] == [("conv", None, 80), ("dense", None, 20)]
    assert found[0].sentence == "The tensors of conv are 80.0 % of the peak: 60 B activations, 20 B workspace."


def test_crumbs_of_a_layer_are_not_put_into_words():
    found = dominant([tensor("conv", 9_999), tensor("conv", 1, Category.CONSTANTS)])
    assert found[0].sentence == "The tensors of conv are 100.0 % of the peak: 9.8 KiB activations."
    assert len(found[0].parts) == 2


def test_what_is_small_is_left_out_but_the_largest_never():
    found = dominant([tensor("large", 95), tensor("edge", 5), *(tensor(f"small{n}", 4) for n in range(1))])
    assert [entry.name for entry in found] == ["large"], "5 of 104 is below 5 %"
    found = dominant([tensor("large", 95), tensor("edge", 5)])
    assert [entry.name for entry in found] == ["large", "edge"]
    found = dominant([tensor(f"equal{n}", 1) for n in range(100)])
    assert len(found) == 1


def test_of_nothing():
    assert dominant([]) == []


def test_crumbs_are_summed_but_not_counted_as_copies():
    kernel, temporary = "dense/kernel", Category.TEMPORARIES
    items = [
        Item("dense", f"op{n}", temporary, "update temporary", kernel, None, "float32", size, size)
        for n, size in enumerate((1000, 1000, 9, 10))
    ]
    (found,) = dominant(items)
    (part,) = found.parts
    assert (part.count, part.bytes) == (3, 2019), "10 of 1000 still counts, 9 does not"
    assert found.sentence == "dense/kernel is 100.0 % of the peak: three update temporaries 2.0 KiB."


def test_parts_that_are_crumbs_of_the_whole_are_not_put_into_words():
    kernel = "dense/kernel"
    items = [
        Item("dense", kernel, Category.WEIGHTS, "weight", kernel, (250,), "float32", 1000, 1000),
        Item("dense", "op", Category.TEMPORARIES, "update temporary", kernel, None, "float32", 4, 10),
    ]
    (found,) = dominant(items)
    assert [part.bytes for part in found.parts] == [1000, 10]
    assert found.sentence == "dense/kernel [250] is 100.0 % of the peak: weight 1000 B."


def test_where_nothing_decides_the_largest_is_told_as_such():
    (found,) = dominant([tensor(f"layer_{n}", 10 if n else 11) for n in range(100)])
    assert found.sentence == (
        "Nothing stands out; the most is layer_0 with 1.1 % of the peak. "
        "Of layers alike together: 100 like layer_0 100.0 %."
    )


def test_equal_blocks_are_told_together_where_none_stands_out():
    blocks = [tensor(f"block_{n}/attention", 4) for n in range(1, 21)] + [
        tensor(f"block_{n}/dense", 3) for n in range(9)
    ]
    (found,) = dominant([*blocks, *(tensor(name, 2) for name in ("head", "table", "norm", "other"))])
    told = "20 like block_1/attention 69.6 %, 9 like block_0/dense 23.5 %"
    assert found.sentence.endswith(f"Of layers alike together: {told}.")
