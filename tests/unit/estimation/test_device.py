"""The device that an estimate is for."""

from __future__ import annotations

import os

import pytest
import tensorflow as tf

from tensorboard_plugin_memest.estimation.device import training_device
from tests.integration.processes import answer_of


@pytest.fixture
def bfc(monkeypatch):
    """Sets the switches of TensorFlow's allocator on the CPU."""

    def switch(use: str | None, limit: str | None = None) -> None:
        for name, value in (("TF_CPU_ALLOCATOR_USE_BFC", use), ("TF_CPU_BFC_MEM_LIMIT_IN_MB", limit)):
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)

    return switch


@pytest.mark.parametrize("kind", ["TPU", "cpu:0", "", 3, True])
def test_another_kind_is_refused_with_what_to_pass(kind):
    with pytest.raises(ValueError, match=r"device must be 'CPU', 'GPU', the name of a GPU") as refused:
        training_device(kind)
    assert repr(kind) in str(refused.value)


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="has a GPU")
def test_without_a_gpu_it_is_the_cpu():
    assert training_device().kind == "CPU"


def test_a_gpu_by_its_name_is_an_idle_one():
    named = training_device("GTX 1070")
    assert (named.kind, named.pool, named.capability) == ("GPU", "preallocated", (6, 1))
    assert named.limit_bytes == 8 * 2**30 - 500 * 2**20
    assert training_device("p3.2xlarge").capability == (7, 0)


def test_a_cpus_pool_grows_and_its_limit_is_the_switchs(bfc):
    bfc(None)
    assert (training_device("cpu").pool, training_device("cpu").limit_bytes) == ("growth", None)
    bfc("1", "100")
    assert training_device("CPU").limit_bytes == 100 * 2**20
    bfc("true", "100")
    assert training_device("CPU").limit_bytes == 100 * 2**20
    bfc("0", "100")
    assert training_device("CPU").limit_bytes is None
    bfc("1", "much")
    assert training_device("CPU").limit_bytes is None
    bfc("1")
    assert training_device("CPU").limit_bytes is None


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="has a GPU")
def test_a_gpu_that_is_not_there_preallocates_and_has_no_known_limit():
    device = training_device("GPU")
    assert (device.kind, device.pool, device.limit_bytes, device.threads) == ("GPU", "preallocated", None, 1)


THREADS = """
    import json, sys
    import tensorflow as tf
    from tensorboard_plugin_memest.estimation.device import training_device

    if sys.argv[1] != "0":
        tf.config.threading.set_inter_op_parallelism_threads(int(sys.argv[1]))
    print(json.dumps(training_device("CPU").threads))
"""


def test_threads_are_those_of_the_process():
    assert answer_of(THREADS, "3") == 3
    assert answer_of(THREADS, "0") == len(os.sched_getaffinity(0)), "TensorFlow takes one for each core"


def test_the_threads_of_an_op_and_its_kernels_are_the_processs():
    program = """
        import json
        import tensorflow as tf
        from tensorboard_plugin_memest.estimation.device import training_device

        unset = training_device("CPU")
        tf.config.threading.set_intra_op_parallelism_threads(3)
        device = training_device("CPU")
        print(json.dumps([unset.intra_threads, device.intra_threads, device.onednn]))
    """
    for switch in ("0", "1"):
        unset, chosen, onednn = answer_of(program, environment={"TF_ENABLE_ONEDNN_OPTS": switch})
        assert unset == len(os.sched_getaffinity(0))
        assert (chosen, onednn) == (3, switch == "1")
