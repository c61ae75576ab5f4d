"""What a process that rehearsed told, and what its silence means."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict

import pytest

from tensorboard_plugin_memest.measure.host_room import too_little_room
from tensorboard_plugin_memest.measure.told import (
    FILE,
    HostTooSmallError,
    RehearsalError,
    limit_of,
    player_environment,
    read_told,
)
from tensorboard_plugin_memest.memory.rehearsal import MeasuredPhase
from tensorboard_plugin_memest.memory.units import format_bytes
from tests.samples import sample_estimate

PHASES = [MeasuredPhase("build", 9, 3, 0, True), MeasuredPhase("first_step", 20, 12, 1, True)]


def tell(place, **told):
    known = {"phase": "step", "phases": [asdict(phase) for phase in PHASES], **told}
    (place / FILE).write_text(json.dumps(known))
    return str(place)


def test_what_was_told_is_read(tmp_path):
    estimate = sample_estimate()
    place = tell(tmp_path, completed=True, estimate=estimate.to_json(), notes=["So it was."])
    played = read_told(place, 0, "", 7)
    assert (played.completed, played.estimate, played.limit_bytes) == (True, estimate, 7)
    assert list(played.phases.values()) == PHASES
    assert played.notes[-1] == "So it was."
    assert (played.timeline, played.explanation, played.peak_bytes) == (None, None, 20)
    text = str(played)
    assert text.startswith("The rehearsal completed 1 step within 7 B; the most in use was 20 B (20 bytes).")
    # The measured first step beside the predicted one.
    (row,) = [line for line in text.splitlines() if line.split()[:2] == ["first", "step"]]
    predicted = estimate.phases["first_step"].peak_bytes
    assert row.split()[2:] == ["20", "B", *format_bytes(predicted).split(), "12", "B"]


def test_a_process_that_the_system_killed_ran_out_of_the_host_s_memory(tmp_path):
    played = read_told(tell(tmp_path, completed=False), -signal.SIGKILL, "", None)
    assert not played.completed
    assert (played.explanation.source, played.explanation.phase) == ("the host", "step")
    assert "killed" in played.explanation.message


@pytest.mark.parametrize(("status", "how"), [(-signal.SIGSEGV, "signal 11"), (3, "exit status 3")])
def test_another_end_is_an_error_with_what_was_written_last(tmp_path, status, how):
    with pytest.raises(RehearsalError, match=rf"ended with {how} before it was done:\nsegfault"):
        read_told(str(tmp_path), status, "segfault", None)


REFUSED = """\
W0000 00:00:17.27 93 bfc_allocator.cc:502] Allocator (bfc_cpu_allocator_for_gpu) ran out of memory trying to allocate \
128.00MiB (rounded to 134217728)requested by op StatefulPartitionedCall/sequential/dense/Relu
W0000 00:00:17.28 93 op_kernel.cc:1858] OP_REQUIRES failed at mkl_util.h:848 : RESOURCE_EXHAUSTED: OOM when allocating \
tensor with shape[8192,4096] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu_bfc
"""


def test_a_kernel_that_went_on_without_its_memory_ended_the_process_and_the_log_says_for_what(tmp_path):
    place = tell(tmp_path, completed=False, phase="step")
    played = read_told(place, -signal.SIGSEGV, REFUSED, 300 * 2**20)
    assert not played.completed
    why = played.explanation
    assert (why.phase, why.shape, why.bytes, why.limit_bytes) == ("step", (8192, 4096), 2**27, 300 * 2**20)
    assert why.op == "StatefulPartitionedCall/sequential/dense/Relu"
    assert why.message.startswith("RESOURCE_EXHAUSTED: OOM when allocating tensor")
    assert why.message.endswith("Then TensorFlow itself ended the process, with signal 11.")
    assert str(played).startswith("The rehearsal died in step 2 within 300.0 MiB.")


def test_a_process_that_was_aborted_after_it_explained_itself_is_believed(tmp_path):
    explanation = read_told(tell(tmp_path), -signal.SIGKILL, "", None).explanation
    place = tell(tmp_path, explanation=explanation.to_dict())
    assert read_told(place, -signal.SIGABRT, "Check failed", None).explanation == explanation


def test_errors_of_the_training_and_refusals_are_raised(tmp_path):
    with pytest.raises(RehearsalError, match=r"not for lack of memory: KeyError: 7(.|\n)*line 3, in build"):
        read_told(tell(tmp_path, failed="line 3, in build", failed_with="KeyError: 7"), 0, "", None)
    with pytest.raises(HostTooSmallError, match="too little"):
        read_told(tell(tmp_path, refused="too little"), 0, "", None)
    assert issubclass(HostTooSmallError, (ValueError, MemoryError))


def test_a_host_is_too_small_for_what_a_run_can_take_at_most():
    estimate = sample_estimate()
    most = estimate.phases["step"].peak_range[1]
    told = too_little_room(estimate, None, most)
    assert "'sequential' at batch size 1: the phase 'first_step' needs up to 17.2" in told
    assert f"({most + 2**30:,} bytes); 17.2" in told
    assert too_little_room(estimate, None, most + 2**30) is None


def test_what_the_allocator_may_not_have_the_host_need_not_have():
    estimate = sample_estimate()
    assert too_little_room(estimate, 2**30, 2**31) is None
    assert "of which it may use 1.00 GiB" in too_little_room(estimate, 2**30, 2**31 - 1)


def test_where_nothing_is_known_nothing_is_refused():
    assert too_little_room(None, None, 1) is None
    assert too_little_room(sample_estimate(), None, None) is None


def test_the_environment_is_this_process_s_with_the_allocator_of_gpus(monkeypatch):
    monkeypatch.setenv("OF_THE_USER", "1")
    monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "5")
    made = player_environment("9.29GiB")
    assert made["OF_THE_USER"] == made["TF_CPU_ALLOCATOR_USE_BFC"] == made["TF_ENABLE_ONEDNN_OPTS"] == "1"
    assert made["CUDA_VISIBLE_DEVICES"] == "-1"
    assert limit_of(made) == 9512 * 2**20
    assert limit_of(player_environment(None)) is None
