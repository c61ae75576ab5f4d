"""What a model that is being built is compiled with.

Keras resolves `jit_compile="auto"` when a model is compiled and forgets that it was asked to: on a machine without a
GPU a model compiled with `"auto"` and one compiled with False are alike. Of those that are compiled while we look on,
we know.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any

from keras.src.trainers.trainer import Trainer

# What `compile` takes for its argument where that is left away.
AUTO = "auto"


@contextlib.contextmanager
def seen_compiling() -> Iterator[dict[int, Any]]:
    """Inside, the `jit_compile` that each model was compiled with last, by the model's id."""
    seen: dict[int, Any] = {}
    compile_model = Trainer.compile
    signature = inspect.signature(compile_model)

    @functools.wraps(compile_model)
    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(TypeError):  # Keras says better what is wrong
            seen[id(self)] = signature.bind(self, *args, **kwargs).arguments.get("jit_compile", AUTO)
        return compile_model(self, *args, **kwargs)

    Trainer.compile = noted
    try:
        yield seen
    finally:
        Trainer.compile = compile_model
