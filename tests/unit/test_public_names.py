"""`import memest`: which names there are, where they come from, and that they cost nothing before they are used."""

from __future__ import annotations

import pytest

import memest
import tensorboard_plugin_memest
from tests.integration.processes import answer_of

HOMES = {
    "Advice": "tensorboard_plugin_memest.memory.advice",
    "Estimate": "tensorboard_plugin_memest.memory.estimate",
    "Explanation": "tensorboard_plugin_memest.memory.explanation",
    "HostEstimate": "tensorboard_plugin_memest.memory.host",
    "MemoryCallback": "tensorboard_plugin_memest.measure.callback",
    "Rehearsal": "tensorboard_plugin_memest.memory.rehearsal",
    "Verdict": "tensorboard_plugin_memest.memory.verdict",
    "WhatIf": "tensorboard_plugin_memest.memory.what_if",
    "estimate": "tensorboard_plugin_memest.estimation.model",
    "estimate_dataset": "tensorboard_plugin_memest.estimation.host.model",
    "estimate_function": "tensorboard_plugin_memest.estimation.function",
    "explain_oom": "tensorboard_plugin_memest.measure.explain",
    "log_dataset": "tensorboard_plugin_memest.api",
    "log_model": "tensorboard_plugin_memest.api",
    "log_profile": "tensorboard_plugin_memest.measure.profile_files",
    "monitor": "tensorboard_plugin_memest.measure.monitor",
    "rehearse": "tensorboard_plugin_memest.measure.rehearse",
    "use_gpu_allocator_on_cpu": "tensorboard_plugin_memest.measure.cpu_allocator",
}


def test_these_are_the_public_names():
    assert set(HOMES) <= set(memest.__all__)
    assert memest.__all__ == tensorboard_plugin_memest.__all__
    assert set(memest.__all__) <= set(dir(memest)) & set(dir(tensorboard_plugin_memest))


@pytest.mark.parametrize(("name", "home"), HOMES.items())
def test_a_name_is_the_same_thing_in_both_packages(name, home):
    found = getattr(memest, name)
    assert found is getattr(tensorboard_plugin_memest, name)
    assert (found.__module__, found.__name__) == (home, name)


@pytest.mark.parametrize("package", [memest, tensorboard_plugin_memest])
def test_a_name_that_is_none_is_told(package):
    with pytest.raises(AttributeError, match=f"'{package.__name__}' has no attribute 'estimte'"):
        _ = package.estimte


def test_importing_memest_imports_no_tensorflow_and_using_a_name_does():
    assert answer_of(
        """
        import json, sys
        import memest
        before = "tensorflow" in sys.modules
        memest.log_profile
        print(json.dumps([before, "tensorflow" in sys.modules]))
        """
    ) == [False, True]


@pytest.mark.parametrize(
    "name",
    ["MemoryCallback", "estimate", "estimate_dataset", "estimate_function", "log_dataset", "log_model", "log_profile"],
)
def test_without_tensorflow_it_says_what_to_install(name):
    told = answer_of(
        """
        import json, sys
        sys.modules["tensorflow"] = sys.modules["keras"] = None
        import memest
        memest.Estimate
        try:
            getattr(memest, sys.argv[1])
        except ModuleNotFoundError as error:
            print(json.dumps(str(error)))
        """,
        name,
    )
    assert told.startswith(f"memest.{name} needs TensorFlow >= 2.16 with Keras 3, and '")
    assert told.endswith("is not installed. Run: pip install tensorflow")
