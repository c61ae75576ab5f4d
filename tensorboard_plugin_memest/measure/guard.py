"""Inside a training, memest's own failures are warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Guard:
    """Calls the parts of memest that run inside a training; one that fails warns once and is not called again."""

    def __init__(self) -> None:
        self._failed: set[str] = set()

    def run(self, part: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """What `function` returns; None when its part has failed, now (with a RuntimeWarning) or before.

        Args:
            part: what the function belongs to, in words that follow "while": `"measuring"`.
            function: what to call.
            *args: its arguments.
            **kwargs: its keyword arguments.
        """
        if part in self._failed:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self._failed.add(part)
            warnings.warn(
                f"memest failed while {part} ({type(error).__name__}: {error}); the training goes on without it.",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
