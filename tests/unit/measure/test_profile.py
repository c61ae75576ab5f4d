"""A profile's events as a measured timeline: steps, what was there before, which variables are looked for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tensorboard_plugin_memest.measure import profile as module
from tensorboard_plugin_memest.measure.alive import BEFORE
from tensorboard_plugin_memest.measure.profile import find_steps, read_profile
from tensorboard_plugin_memest.measure.xplane import Execution, Profile
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.op_names import NO_OP
from tensorboard_plugin_memest.memory.timeline import Span
from tests.samples import KERNEL_BYTES, sample_estimate
from tests.unit.measure.events import Allocator

MIB = 2**20


def profile_of(*memory, steps=(), functions=(), backward=()) -> Profile:
    return Profile("worker", "2026_02_03_04_05_06", memory, steps, functions, np.array(backward, np.int64))


@pytest.fixture
def read(monkeypatch):
    """Reads a Profile as if it had come from a file."""

    def run(profile: Profile, estimate=None):
        monkeypatch.setattr(module, "read_xplane", lambda path: profile)
        return read_profile("unused", estimate)

    return run


def test_marked_steps_go_by_their_numbers():
    steps = [Execution("Profiled batch", 7, 10, 20), Execution("Profiled batch", 8, 20, 30)]
    functions = [Execution("train_1", None, 12, 18)]
    found = find_steps(profile_of(steps=steps, functions=functions, backward=[15]))
    assert found == [Span("step 7", 10, 20), Span("step 8", 20, 30)]


def test_a_marker_inside_another_is_the_same_step():
    steps = [Execution("train", 7, 10, 20), Execution("inner", 0, 11, 19), Execution("train", 8, 21, 30)]
    assert [span.name for span in find_steps(profile_of(steps=steps))] == ["step 7", "step 8"]


def test_without_markers_the_runs_of_functions_that_have_a_backward_pass_are_steps():
    functions = [
        Execution("initialize_3", None, 0, 5),
        Execution("multi_step_on_iterator_1271", None, 10, 20),
        Execution("multi_step_on_iterator_1436", None, 30, 40),
        # Its backward pass was not seen here; it is the training step all the same.
        Execution("multi_step_on_iterator_1271", None, 50, 60),
    ]
    found = find_steps(profile_of(functions=functions, backward=[12, 25]))
    assert found == [Span("step 0", 10, 20), Span("step 1", 50, 60)]


def test_where_nothing_tells_there_are_no_steps():
    functions = [Execution("multi_step_on_iterator_1436", None, 30, 40)]
    assert find_steps(profile_of(functions=functions, backward=[])) == []


def test_the_timeline_has_every_event_and_names_what_each_frees(read):
    allocator = Allocator()
    old = allocator.allocate(1000)
    allocator.record()
    relu = allocator.allocate(300, "StatefulPartitionedCall/Relu")
    allocator.allocate(10)
    allocator.free(old)
    allocator.free(relu)
    (measured,) = read(profile_of(allocator.events("GPU_0_bfc"), steps=[Execution("train", 3, 0, 99)]))
    assert (measured.allocator, measured.host, measured.started_at) == ("GPU_0_bfc", "worker", "2026_02_03_04_05_06")
    timeline = measured.timeline
    assert timeline.unit == "ns"
    assert timeline.ticks == [20, 30, 40, 50]
    assert timeline.live_bytes == [1536, 1792, 768, 256]
    assert [timeline.op_at(position) for position in range(4)] == ["Relu", NO_OP, BEFORE, "Relu"]
    assert measured.before_bytes == 1024
    assert measured.steps == timeline.spans == (Span("step 3", 0, 99),)
    assert measured.peak_bytes == 1792 == sum(item.bytes for item in measured.live_at_peak)
    # What goes into a record must be plain numbers.
    assert all(type(number) is int for number in [*timeline.ticks, *timeline.live_bytes, *timeline.op_index])
    assert measured.to_dict()["before_bytes"] == 1024


def test_a_window_that_only_frees_peaks_at_its_start(read):
    allocator = Allocator()
    blocks = [allocator.allocate(1 * MIB), allocator.allocate(2 * MIB)]
    allocator.record()
    for block in blocks:
        allocator.free(block)
    (measured,) = read(profile_of(allocator.events()))
    assert measured.before_bytes == measured.peak_bytes == 3 * MIB
    assert measured.live_at_peak == measured.before
    assert sum(item.bytes for item in measured.before) == 3 * MIB


@pytest.mark.parametrize(
    ("device", "allocator", "looked_for"),
    [
        ("CPU", "bfc_cpu_allocator_for_gpu", True),
        ("CPU", "mklcpu", True),
        ("CPU", "GPU_0_bfc", False),
        ("GPU", "GPU_0_bfc", True),
        ("GPU", "GPU_3_bfc", True),
        ("GPU", "gpu_host_bfc", False),
        ("GPU", "bfc_cpu_allocator_for_gpu", False),
    ],
)
def test_variables_are_looked_for_where_the_estimate_has_them(read, device, allocator, looked_for):
    estimate = sample_estimate()
    estimate = dataclasses.replace(estimate, subject=dataclasses.replace(estimate.subject, device=device))
    simulated = Allocator()
    simulated.allocate(4 * KERNEL_BYTES)
    simulated.record()
    simulated.allocate(KERNEL_BYTES, "gradient_tape/sequential/dense/MatMul_1", shape="[6019376,128]")
    (measured,) = read(profile_of(simulated.events(allocator)), estimate)
    names = {item.name for item in measured.before if item.category is not Category.UNATTRIBUTED}
    expected = {
        item.name
        for item in estimate.phases["step"].live_at_peak
        if item.category in (Category.WEIGHTS, Category.OPTIMIZER_SLOTS)
    }
    assert names == (expected if looked_for else set())
    assert sum(item.bytes for item in measured.before) == measured.before_bytes
    assert sum(item.bytes for item in measured.live_at_peak) == measured.peak_bytes
    gradients = [item.role for item in measured.live_at_peak if item.category is Category.GRADIENTS]
    assert gradients == (["gradient"] if looked_for else [])
