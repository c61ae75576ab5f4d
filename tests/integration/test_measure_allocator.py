"""Allocator statistics under each of the CPU allocators that TensorFlow can start with."""

from __future__ import annotations

from tensorboard_plugin_memest.measure.cpu_allocator import WHAT_TO_DO
from tests.integration.processes import answer_of

FIND = """
import json
from tensorboard_plugin_memest.measure.allocator import find_allocators
found = find_allocators()
print(json.dumps({
    "allocators": [[a.device, a.source, a.limit_bytes] for a in found.allocators],
    "notes": list(found.notes),
}))
"""


def test_bfc_on_the_cpu_is_measured_and_its_limit_known():
    found = answer_of(FIND, environment={"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "300"})
    assert found == {"allocators": [["CPU:0", "TensorFlow's BFC allocator", 300 * 2**20]], "notes": []}


def test_the_limit_that_tensorflow_was_given_is_where_it_runs_out():
    code = """
    import json, tensorflow as tf
    from tensorboard_plugin_memest.measure.allocator import find_allocators
    (allocator,) = find_allocators().allocators
    kept = []
    try:
        while len(kept) < 100:
            kept.append(tf.random.uniform((2**20,)))
    except tf.errors.ResourceExhaustedError:
        pass
    print(json.dumps([len(kept), allocator.limit_bytes, allocator.read()._asdict()]))
    """
    kept, limit, reading = answer_of(
        code, environment={"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "64"}
    )
    assert limit == 64 * 2**20
    assert kept * 4 * 2**20 <= reading["peak"] <= limit
    assert kept < 17


def test_the_default_allocator_counts_nothing_and_the_note_says_what_to_do():
    found = answer_of(FIND, environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
    assert found["allocators"] == []
    assert found["notes"] == [f"CPU:0: TensorFlow's default CPU allocator keeps no memory statistics. {WHAT_TO_DO}"]


def test_onednn_s_allocator_is_named_as_inexact():
    found = answer_of(FIND, environment={"TF_ENABLE_ONEDNN_OPTS": "1"})
    assert found["allocators"] == [["CPU:0", "oneDNN's allocator, tensors of 256 KiB and more", None]]
    assert found["notes"] == [f"CPU:0: oneDNN's allocator does not count tensors under 256 KiB. {WHAT_TO_DO}"]


def test_onednn_s_allocator_counts_from_256_kib_on():
    code = """
    import json, tensorflow as tf
    from tensorboard_plugin_memest.measure.allocator import find_allocators
    (allocator,) = find_allocators().allocators
    currents = []
    for size in (2**18 - 4, 2**18):
        before = allocator.read().current
        kept = tf.random.uniform((size // 4,))
        currents.append(allocator.read().current - before)
        del kept
    print(json.dumps(currents))
    """
    below, at = answer_of(code, environment={"TF_ENABLE_ONEDNN_OPTS": "1"})
    assert below == 0
    assert at == 2**18


def test_a_switch_that_came_too_late_is_told():
    code = """
    import os, tensorflow as tf
    tf.zeros(())
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
    """
    found = answer_of(code.replace("\n    ", "\n") + FIND, environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
    assert found["allocators"] == []
    (note,) = found["notes"]
    assert "TF_CPU_ALLOCATOR_USE_BFC was set after TensorFlow had begun" in note
    assert note.endswith(WHAT_TO_DO)


def test_the_gpu_s_allocator_is_put_in_charge_of_the_cpu_after_the_imports():
    code = """
    import json, os, tensorflow as tf, keras, memest
    memest.use_gpu_allocator_on_cpu("64.9MiB")
    memest.use_gpu_allocator_on_cpu("64MiB")  # the same again, before and after there are devices
    kept = []
    try:
        while len(kept) < 100:
            kept.append(tf.random.uniform((2**20,)))
    except tf.errors.ResourceExhaustedError:
        pass
    memest.use_gpu_allocator_on_cpu("64MiB")
    try:
        memest.use_gpu_allocator_on_cpu("1GiB")
    except RuntimeError as error:
        told = str(error)
    peak = tf.config.experimental.get_memory_info("CPU:0")["peak"]
    print(json.dumps([len(kept), peak, told, os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"]]))
    """
    kept, peak, told, limit = answer_of(code, environment={"TF_CPU_BFC_MEM_LIMIT_IN_MB": "7"})
    assert kept * 4 * 2**20 <= peak <= 64 * 2**20
    assert 10 < kept < 17
    assert limit == "64"
    assert told.startswith("It is too late for memest.use_gpu_allocator_on_cpu('1GiB')")
    assert "the BFC allocator and a limit of 64.0 MiB" in told
    assert told.endswith("Or set TF_CPU_ALLOCATOR_USE_BFC=1 TF_CPU_BFC_MEM_LIMIT_IN_MB=1024 in the environment.")


def test_after_the_first_tensor_it_is_too_late_and_nothing_is_changed():
    code = """
    import json, os, tensorflow as tf, memest
    tf.zeros(())
    try:
        memest.use_gpu_allocator_on_cpu()
    except ValueError as error:
        print(json.dumps([str(error), "TF_CPU_ALLOCATOR_USE_BFC" in os.environ]))
    """
    told, changed = answer_of(code, environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
    assert "TensorFlow's own CPU allocator" in told
    assert not changed


def test_logical_cpus_share_one_allocator_and_are_told_once():
    code = """
    import tensorflow as tf
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    """
    found = answer_of(code.replace("\n    ", "\n") + FIND)
    assert [device for device, _, _ in found["allocators"]] == ["CPU:0"]
