"""An optimizer made again from its settings."""

from __future__ import annotations

from typing import Any

import keras

_ANY_RATE = 0.001


def copied_optimizer(optimizer: Any, **changes: Any) -> Any:
    """An unbuilt optimizer like `optimizer`, with other settings; a fixed learning rate may be another."""
    attributes = vars(optimizer)
    rate = attributes.get("_learning_rate")
    if isinstance(rate, keras.Variable):
        # The value of a variable that was made without memory cannot be asked for, and decides about no bytes.
        attributes["_learning_rate"] = _ANY_RATE
    try:
        config = optimizer.get_config()
    finally:
        attributes["_learning_rate"] = rate
    return type(optimizer).from_config({**config, "learning_rate": config.get("learning_rate", _ANY_RATE), **changes})
