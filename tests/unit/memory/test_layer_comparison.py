"""A profile's peak against the predicted one, layer by layer."""

from __future__ import annotations

from dataclasses import replace

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.layer_comparison import compare_profile, highest_step, shown_phase
from tests.samples import CONV, DENSE, sample_estimate, sample_profile


def test_the_rows_add_up_to_both_peaks_and_the_largest_difference_goes_first():
    profile, estimate = sample_profile(), sample_estimate()
    compared = compare_profile(estimate, [profile])
    assert compared.phase is estimate.phases["step"]
    assert sum(one.measured_bytes for one in compared.layers) == profile.peak_bytes
    assert sum(one.predicted_bytes for one in compared.layers) == estimate.phases["step"].peak_bytes
    rows = {one.layer: one for one in compared.layers}
    assert rows[DENSE].measured_bytes == profile.peak_bytes - 1537
    assert rows[CONV].measured_bytes == 0
    assert rows["(step)"].difference_bytes == 1537 - rows["(step)"].predicted_bytes
    differences = [abs(one.difference_bytes) for one in compared.layers]
    assert differences == sorted(differences, reverse=True)


def test_the_last_profile_of_the_kind_of_device_counts_and_of_that_the_highest():
    old = sample_profile(started_at="2026_01_01_00_00_00")
    new = sample_profile(started_at="2026_01_02_00_00_00")
    host = replace(new, allocator="GPU_0_bfc")
    estimate = sample_estimate()
    assert compare_profile(estimate, [new, old, host]).profile is new
    on_gpu = replace(estimate, subject=replace(estimate.subject, device="GPU"))
    small = replace(host, allocator="GPU_1_bfc", before_bytes=0, timeline=replace(host.timeline, live_bytes=[1] * 40))
    assert compare_profile(on_gpu, [old, small, host, new]).profile is host
    assert compare_profile(estimate, [host]) is None
    assert compare_profile(None, [new]) is None


def test_the_first_step_is_the_one_that_begins_with_weights_and_without_slots():
    estimate, profile = sample_estimate(), sample_profile()
    assert shown_phase(estimate, profile).name == "step"
    without = tuple(item for item in profile.before if item.category is not Category.OPTIMIZER_SLOTS)
    falling = replace(profile.timeline, live_bytes=profile.timeline.live_bytes[:20] + [0] * 20)
    assert shown_phase(estimate, replace(profile, before=without, timeline=falling)).name == "first_step"
    # A later step of that profile peaks higher.
    rising = replace(profile.timeline, live_bytes=[0] * 20 + profile.timeline.live_bytes[20:])
    assert shown_phase(estimate, replace(profile, before=without, timeline=rising)).name == "step"
    # Nothing was matched at all, as in a profile that was read without an estimate.
    assert shown_phase(estimate, replace(profile, before=(), timeline=falling)).name == "step"
    only = replace(estimate, phases={"first_step": estimate.phases["first_step"]})
    assert shown_phase(only, profile).name == "first_step"


def test_without_known_steps_the_whole_profile_is_one():
    profile = replace(sample_profile(), steps=())
    step = highest_step(profile)
    assert (step.start, step.end) == (0, profile.timeline.ticks[-1])
