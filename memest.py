"""The name people import: `import memest; memest.log_model(model)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorboard_plugin_memest
from tensorboard_plugin_memest import __all__ as __all__

if TYPE_CHECKING:
    from tensorboard_plugin_memest import Advice as Advice
    from tensorboard_plugin_memest import Estimate as Estimate
    from tensorboard_plugin_memest import Explanation as Explanation
    from tensorboard_plugin_memest import HostEstimate as HostEstimate
    from tensorboard_plugin_memest import MemoryCallback as MemoryCallback
    from tensorboard_plugin_memest import Rehearsal as Rehearsal
    from tensorboard_plugin_memest import Verdict as Verdict
    from tensorboard_plugin_memest import estimate as estimate
    from tensorboard_plugin_memest import estimate_dataset as estimate_dataset
    from tensorboard_plugin_memest import estimate_function as estimate_function
    from tensorboard_plugin_memest import explain_oom as explain_oom
    from tensorboard_plugin_memest import log_dataset as log_dataset
    from tensorboard_plugin_memest import log_model as log_model
    from tensorboard_plugin_memest import log_profile as log_profile
    from tensorboard_plugin_memest import monitor as monitor
    from tensorboard_plugin_memest import rehearse as rehearse
    from tensorboard_plugin_memest import use_gpu_allocator_on_cpu as use_gpu_allocator_on_cpu


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(tensorboard_plugin_memest, name)
    raise AttributeError(f"module 'memest' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if __name__ == "__main__":
    from tensorboard_plugin_memest.cli import main

    raise SystemExit(main())
