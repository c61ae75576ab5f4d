"""The error that tells a caller what to pass instead."""

from __future__ import annotations


class UsageError(ValueError):
    """memest was called with something it cannot work with; the text says what to do.

    A class of its own, so that inside a training script misuse can be told from a failure of memest itself.
    """
