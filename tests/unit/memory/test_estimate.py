"""The prediction as data: peaks, layers, JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo
from tensorboard_plugin_memest.memory.format import FORMAT, NewerFormatError
from tests.samples import DENSE, KERNEL_BYTES, phase, resident_items, sample_estimate, step_items
from tests.strategies import estimates


@given(estimates)
def test_json_round_trip(estimate):
    read = Estimate.from_json(estimate.to_json())
    assert read == estimate
    assert read.to_json() == estimate.to_json()
    assert list(read.phases) == list(estimate.phases)


def test_json_keeps_types_that_json_has_not():
    read = Estimate.from_json(sample_estimate().to_json().encode())
    item = read.items[0]
    assert item.shape == (6019376, 128)
    assert item.category is Category.WEIGHTS
    assert read.peak_phase.peak_range == (read.peak_bytes - 4096, read.peak_bytes + 4096)


def test_a_newer_format_is_refused_in_words():
    data = json.loads(sample_estimate().to_json())
    data["format"] = FORMAT + 1
    with pytest.raises(NewerFormatError, match=f"format {FORMAT + 1}; this memest reads up to {FORMAT}. Upgrade"):
        Estimate.from_json(json.dumps(data))


def test_the_peak_is_the_higher_of_the_training_phases():
    estimate = sample_estimate()
    small = phase("step", resident_items())
    large = phase("build", [*step_items(), *step_items()])
    changed = replace(estimate, phases={**estimate.phases, "build": large, "step": small})
    assert large.peak_bytes > changed.peak_bytes
    assert changed.peak_phase.name == "first_step"
    assert changed.peak_bytes == sum(item.bytes for item in step_items())


def test_of_equal_peaks_the_repeating_step_is_told():
    estimate = sample_estimate()
    assert estimate.phases["first_step"].peak_bytes == estimate.phases["step"].peak_bytes
    assert estimate.peak_phase.name == "step"


def test_the_bytes_of_the_layers_are_the_peak():
    estimate = sample_estimate()
    assert estimate.peak_bytes == 6 * KERNEL_BYTES + 768 + (24300480 + 64) + 1000003 + 1532928 + 256
    assert sum(layer.bytes_at_peak for layer in estimate.layers) == estimate.peak_bytes
    assert sum(estimate.phases["step"].categories.values()) == estimate.peak_bytes


def test_layers_come_in_the_models_order_then_what_is_no_layer():
    layers = sample_estimate().layers
    assert [layer.path for layer in layers] == [
        "sequential/conv2d",
        "sequential/flatten",
        "sequential/dense",
        "(input)",
        "(step)",
    ]
    flatten, dense, batch = layers[1], layers[2], layers[3]
    assert (flatten.bytes_at_peak, flatten.bytes_per_category) == (0, {})
    assert dense.bytes_per_category == {
        Category.WEIGHTS: KERNEL_BYTES,
        Category.GRADIENTS: KERNEL_BYTES,
        Category.OPTIMIZER_SLOTS: 2 * KERNEL_BYTES,
        Category.TEMPORARIES: 2 * KERNEL_BYTES,
    }
    assert (dense.path, dense.class_name, dense.parameters) == (DENSE, "Dense", 770480256)
    assert (batch.class_name, batch.output_shape, batch.parameters) == ("", None, 0)


def test_a_layer_used_twice_in_the_list_holds_its_bytes_once():
    info = LayerInfo(DENSE, "Dense", (1, 128), 770480256)
    estimate = replace(sample_estimate(), layer_infos=(info, info))
    assert [layer.bytes_at_peak for layer in estimate.layers[:2]] == [6 * KERNEL_BYTES, 0]


def test_fits_takes_text_and_names_the_phase():
    verdict = sample_estimate().fits("9.29GiB")
    assert not verdict
    assert verdict.limit_bytes == 9975061544
    assert verdict.phases["build"].outcome == "fits"
    assert verdict.margin_bytes == 9975061544 - sample_estimate().peak_bytes
    with pytest.raises(ValueError, match="'a lot' is not a memory size"):
        sample_estimate().fits("a lot")
