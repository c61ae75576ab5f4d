"""Whose compiler is asked. The GPU is a stand-in: nobody here has one."""

from __future__ import annotations

import keras
import pytest

from tensorboard_plugin_memest.estimation.device import training_device
from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.xla import target
from tensorboard_plugin_memest.estimation.xla.process import CompilerProcess, _environment
from tensorboard_plugin_memest.estimation.xla.request import NotCompilableError, Request
from tensorboard_plugin_memest.estimation.xla.target import ON_CPU, Target, targets

NAME = "NVIDIA H100, compute capability (9, 0)"
# What was compiled for real.
ANSWERS: dict[Request, bytes] = {}


def build() -> keras.Model:
    model = keras.Sequential([keras.Input((30,)), keras.layers.Dense(40)])
    model.compile("sgd", "mse", jit_compile=True)
    return model


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    monkeypatch.setenv("MEMEST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(target, "_names_of_gpus", lambda: [NAME, "another"])


@pytest.fixture
def asked(monkeypatch):
    """Compilers that answer as the CPU's does, and those that were asked for a step, by their kind."""
    compile_really, kinds = CompilerProcess.compile, []

    def compile_here(self, request, timeout, while_waiting=lambda _: None):
        kinds.append(request.target.kind)
        plain = Request(request.graph, request.arguments, request.fetches)
        if plain not in ANSWERS:
            ANSWERS[plain] = compile_really(self, plain, timeout, while_waiting)
        return ANSWERS[plain]

    monkeypatch.setattr(CompilerProcess, "compile", compile_here)
    return kinds


def test_a_gpus_compiler_is_asked_where_a_gpu_is_there_and_the_run_is_for_one(gpu):
    assert targets(training_device("GPU")) == [Target("GPU", NAME), ON_CPU]
    assert targets(training_device("RTX 3080")) == [Target("GPU", NAME), ON_CPU]
    assert targets(training_device("CPU")) == [ON_CPU]


def test_without_one_it_is_the_cpus_and_that_is_said():
    device = training_device("GPU")
    assert targets(device) == [ON_CPU]
    assert "the one for the GPU fuses" in ON_CPU.notes(device)[0]
    assert ON_CPU.notes(training_device("CPU")) == []


def test_what_the_gpus_compiler_tells_is_taken_and_kept_apart_from_what_the_cpus_does(gpu, asked):
    made = [estimate(build, batch_size=8, device=device) for device in ("GPU", "GPU", "CPU")]
    # The second time it was known.
    assert asked == ["GPU", "CPU"]
    (note,) = [note for note in made[0].assumptions if "compiler for this machine's GPU" in note]
    assert NAME in note
    assert not [note for note in made[0].assumptions if "compiler for the CPU was asked" in note]
    assert made[1] == made[0]


def test_a_gpus_compiler_that_refuses_is_followed_by_the_cpus(gpu, asked, monkeypatch):
    here = CompilerProcess.compile

    def refuse(self, request, timeout, while_waiting=lambda _: None):
        if request.target.kind == "GPU":
            raise NotCompilableError("XLA refused it (RESOURCE_EXHAUSTED)")
        return here(self, request, timeout, while_waiting)

    monkeypatch.setattr(CompilerProcess, "compile", refuse)
    made = estimate(build, batch_size=8, device="GPU")
    assert asked == ["CPU"]
    words = "\n".join(made.assumptions)
    assert f"GPU ({NAME}) was asked first, but XLA refused it (RESOURCE_EXHAUSTED)." in words
    assert "the one for the GPU fuses" in words
    assert "APPROXIMATION" not in words


def test_an_account_that_cannot_be_read_is_none(gpu, asked, monkeypatch):
    here = CompilerProcess.compile

    def strange(self, request, timeout, while_waiting=lambda _: None):
        return b"\xff" if request.target.kind == "GPU" else here(self, request, timeout, while_waiting)

    monkeypatch.setattr(CompilerProcess, "compile", strange)
    made = estimate(build, batch_size=8, device="GPU")
    assert "its account cannot be read (DecodeError" in "\n".join(made.assumptions)


def test_a_process_that_sees_no_gpu_refuses_and_another_one_compiles_for_the_cpu(gpu):
    made = estimate(build, batch_size=8, device="GPU")
    words = "\n".join(made.assumptions)
    assert f"GPU ({NAME}) was asked first, but XLA refused it" in words
    assert "APPROXIMATION" not in words


def test_a_compiler_for_a_gpu_sees_it_and_takes_no_more_of_it_than_it_needs(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "1")
    for_gpu, for_cpu = _environment("GPU"), _environment("CPU")
    assert (for_gpu["CUDA_VISIBLE_DEVICES"], for_gpu["TF_FORCE_GPU_ALLOW_GROWTH"]) == ("3", "true")
    assert for_cpu["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "TF_CPU_ALLOCATOR_USE_BFC" not in for_gpu.keys() | for_cpu.keys()
