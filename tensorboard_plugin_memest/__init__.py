"""memest: why does my training run out of memory, and what do I change?

The public names are loaded when they are first used: TensorBoard imports this package to find the plugin, and the
plugin runs without TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorboard_plugin_memest.api import log_dataset, log_model
    from tensorboard_plugin_memest.estimation.function import estimate_function
    from tensorboard_plugin_memest.estimation.host.model import estimate_dataset
    from tensorboard_plugin_memest.estimation.model import estimate
    from tensorboard_plugin_memest.measure.callback import MemoryCallback
    from tensorboard_plugin_memest.measure.cpu_allocator import use_gpu_allocator_on_cpu
    from tensorboard_plugin_memest.measure.explain import explain_oom
    from tensorboard_plugin_memest.measure.monitor import monitor
    from tensorboard_plugin_memest.measure.profile_files import log_profile
    from tensorboard_plugin_memest.measure.rehearse import rehearse
    from tensorboard_plugin_memest.memory.advice import Advice
    from tensorboard_plugin_memest.memory.estimate import Estimate
    from tensorboard_plugin_memest.memory.explanation import Explanation
    from tensorboard_plugin_memest.memory.host import HostEstimate
    from tensorboard_plugin_memest.memory.rehearsal import Rehearsal
    from tensorboard_plugin_memest.memory.verdict import Verdict
    from tensorboard_plugin_memest.memory.what_if import WhatIf

_HOMES = {
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

__all__ = [
    "Advice",
    "Estimate",
    "Explanation",
    "HostEstimate",
    "MemoryCallback",
    "Rehearsal",
    "Verdict",
    "WhatIf",
    "estimate",
    "estimate_dataset",
    "estimate_function",
    "explain_oom",
    "log_dataset",
    "log_model",
    "log_profile",
    "monitor",
    "rehearse",
    "use_gpu_allocator_on_cpu",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("tensorflow", "keras"):
            raise
        raise ModuleNotFoundError(
            f"memest.{name} needs TensorFlow >= 2.16 with Keras 3, and {missing!r} is not installed. "
            "Run: pip install tensorflow",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
