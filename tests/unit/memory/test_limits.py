"""Limits as people say them."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.memory.catalogue import AMD, APPLE, CATALOGUE, NVIDIA
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.limits import Limit, find_device, resolve_limit, risks
from tensorboard_plugin_memest.memory.units import GIB, MIB


def test_sizes():
    assert resolve_limit(12345) == Limit(12345)
    assert resolve_limit("9.29GiB") == Limit(9975061544)
    assert resolve_limit("24GB") == Limit(24 * 10**9)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("RTX 3080", "RTX 3080 10GB"),
        ("rtx3080", "RTX 3080 10GB"),
        ("3080", "RTX 3080 10GB"),
        ("NVIDIA GeForce RTX 3080 10GB", "RTX 3080 10GB"),
        ("GeForce RTX 3080 12 GB", "RTX 3080 12GB"),
        ("rtx-3080-ti", "RTX 3080 Ti"),
        ("A100 80GB", "A100 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("a100 40gib", "A100 40GB"),
        ("Tesla V100-SXM2-16GB", "V100 16GB"),
        ("T4", "T4"),
        ("Tesla T4 (Colab)", "T4"),
        ("T4 15GB", "T4"),
        ("NVIDIA H100 80GB HBM3", "H100 80GB"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("A6000", "RTX A6000"),
        ("AMD Radeon RX 7900 XTX", "RX 7900 XTX"),
        ("mi300x", "Instinct MI300X"),
        ("Apple M2 Max 64GB", "M2 Max 64GB"),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", "RTX 3060 Laptop"),
        ("GeForce RTX 3080 Mobile 16GB", "RTX 3080 Laptop 16GB"),
        ("GTX 970", "GTX 970"),
        ("Titan X", "GTX Titan X"),
        ("Quadro P5000", "P5000"),
        ("p3.2xlarge", "p3.2xlarge"),
        ("Standard_NC6s_v3", "NC6s_v3"),
        ("a2-highgpu-1g", "a2-highgpu-1g"),
    ],
)
def test_spellings(said, name):
    assert find_device(said).name == name


def test_every_name_finds_itself():
    assert len({model.name for model in CATALOGUE}) == len(CATALOGUE)
    for model in CATALOGUE:
        assert find_device(model.name) is model


def test_there_are_many():
    assert sum(model.carries is None for model in CATALOGUE) >= 60
    assert {model.vendor for model in CATALOGUE} == {NVIDIA, AMD, APPLE}
    assert sum(model.carries is not None for model in CATALOGUE) >= 40


@pytest.mark.parametrize(
    ("said", "candidates"),
    [
        ("A100", ["A100 40GB", "A100 80GB"]),
        ("V100", ["V100 16GB", "V100 32GB"]),
        ("M1", ["M1 8GB", "M1 16GB"]),
        ("RTX 3080 24GB", ["RTX 3080 10GB", "RTX 3080 12GB"]),
    ],
)
def test_names_of_several_devices_are_refused_with_all(said, candidates):
    with pytest.raises(UsageError) as error:
        resolve_limit(said)
    assert all(repr(candidate) in str(error.value) for candidate in [said, *candidates])


@pytest.mark.parametrize("said", ["RTX 3090 Laptop GPU", "RTX 3081", "lots", "", "GPU"])
def test_what_is_unknown_is_refused(said):
    with pytest.raises(UsageError, match="is not a memory size, nor a device"):
        resolve_limit(said)
    with pytest.raises(UsageError, match="RTX 3080"):
        resolve_limit("RTX 3081")


@pytest.mark.parametrize("said", ["9,29 GiB", "-1GiB", "1e", "12 M"])
def test_numbers_are_no_misspelt_devices(said):
    with pytest.raises(UsageError) as error:
        resolve_limit(said)
    assert "Did you mean" not in str(error.value)
    with pytest.raises(UsageError, match="Did you mean 'RTX 5090 Laptop'"):
        resolve_limit("RTX 3090 Laptop")


def test_a_letter_for_a_unit_is_no_device():
    assert (resolve_limit("12G").bytes, resolve_limit("12Gi").bytes) == (12 * 10**9, 12 * GIB)
    assert resolve_limit("3080 Ti").device is not None


def test_no_text():
    with pytest.raises(TypeError):
        resolve_limit(2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "memory", "reserve"),
    [
        ("GTX 1080 Ti", 11 * GIB, 500),
        ("T4", 15 * GIB, 1050),
        ("V100 32GB", 32 * GIB, 1050),
        ("RTX 3080", 10 * GIB, 1536),
        ("g5.xlarge", 22 * GIB + 512 * MIB, 1536),
        ("H100", 80 * GIB, 1800),
        ("RTX 5090", 32 * GIB, 1800),
    ],
)
def test_what_tensorflow_uses_of_it(name, memory, reserve):
    limit = resolve_limit(name)
    assert limit.device is not None
    assert limit.device.memory_bytes == memory
    assert limit.bytes == memory - reserve * MIB


def test_unified_memory_is_not_all_the_gpus():
    assert resolve_limit("M1 Max 64GB").bytes == 48 * GIB
    assert resolve_limit("M1 16GB").bytes == 16 * GIB - 16 * GIB // 3


def test_a_device_in_words():
    assert str(resolve_limit("g4dn.xlarge")) == (
        "13.97 GiB (g4dn.xlarge with T4: 15.00 GiB, of which TensorFlow leaves 1.03 GiB alone)"
    )


def test_risks_are_told_apart():
    assert risks(Limit(10), 5, 8, on_gpu=False, grows=True) == ()
    assert any("gaps" in risk for risk in risks(Limit(10), 5, 11, on_gpu=False, grows=True))
    # What does not fit anyway has no other risk.
    assert risks(Limit(10), 11, 12, on_gpu=False, grows=False) == ()
    assert any("growth" in risk for risk in risks(Limit(10), 5, 8, on_gpu=True, grows=True))
    assert any("context" in risk for risk in risks(Limit(10), 5, 8, on_gpu=True, grows=False))
    older = [
        risk
        for name in ("T4", "A2")
        for risk in risks(resolve_limit(name), 5, 8, on_gpu=True, grows=False, for_any=True)
    ]
    assert [risk for risk in older if "copy" in risk] == [older[0]]
    assert "On a T4 (7.5) convolutions" in older[0]
    assert "device='T4'" in older[0]
    assert any("idle T4" in risk for risk in risks(resolve_limit("T4"), 5, 8, on_gpu=True, grows=False))
