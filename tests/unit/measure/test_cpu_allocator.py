"""The environment that puts BFC in charge of the CPU."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.measure.cpu_allocator import allocator_environment, use_gpu_allocator_on_cpu

USE = {"TF_CPU_ALLOCATOR_USE_BFC": "1"}


@pytest.mark.parametrize(
    ("limit", "megabytes"),
    [(2**20, "1"), (3 * 2**20 - 1, "2"), ("9.29GiB", "9512"), ("24GB", "22888"), (" 512 MiB ", "512")],
)
def test_a_limit_is_rounded_down_to_whole_mib(limit, megabytes):
    assert allocator_environment(limit) == {**USE, "TF_CPU_BFC_MEM_LIMIT_IN_MB": megabytes}


def test_without_a_limit_none_is_set():
    assert allocator_environment(None) == USE


@pytest.mark.parametrize("limit", [0, -1, 2**20 - 1, "1023KiB", "much", "9.29"])
def test_a_limit_that_is_none_is_refused_with_what_was_given(limit):
    with pytest.raises(ValueError, match=repr(limit)):
        use_gpu_allocator_on_cpu(limit)


def test_a_limit_of_a_wrong_type_is_refused():
    with pytest.raises(TypeError, match=r"not 9\.29\."):
        use_gpu_allocator_on_cpu(9.29)
