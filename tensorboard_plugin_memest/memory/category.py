"""What a byte is for. Every byte of a peak is in exactly one category."""

from __future__ import annotations

from enum import Enum


class Category(str, Enum):
    """The categories, in the order in which they are stacked and listed everywhere."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER_SLOTS = "optimizer_slots"
    ACTIVATIONS = "activations"
    INPUTS = "inputs"
    TEMPORARIES = "temporaries"
    WORKSPACE = "workspace"
    CONSTANTS = "constants"
    UNATTRIBUTED = "unattributed"

    def __str__(self) -> str:
        return self.value

    @property
    def label(self) -> str:
        """The category in words."""
        return self.value.replace("_", " ")
