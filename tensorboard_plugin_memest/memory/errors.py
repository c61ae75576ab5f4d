"""The error that tells a caller what to pass instead."""

from __future__ import annotations

import re


class UsageError(ValueError):
    """memest was called with something it cannot work with; the text says what to do.

    A class of its own, so that inside a training script misuse can be told from a failure of memest itself.
    """


def reason_of(error: BaseException) -> str:
    """What an error says, in a line: its first one, and where Keras tells there which layer it was, the next."""
    lines = [line for line in re.sub(r"\x1b\[\d*m", "", str(error)).splitlines() if line.strip()]
    of_layer = bool(lines) and lines[0].startswith("Exception encountered when calling")
    return f"{type(error).__name__}: {' '.join(lines[: 2 if of_layer else 1])}"
