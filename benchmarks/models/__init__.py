"""The configurations, a module for each family of models."""

from __future__ import annotations

from benchmarks.configuration import Configuration
from benchmarks.models import (
    applications,
    attention,
    convolution,
    dense,
    embedding,
    further,
    generative,
    many,
    optimizers,
    precision,
    recurrent,
    residual,
    segmentation,
    transfer,
)

_FAMILIES = (
    convolution,
    residual,
    segmentation,
    recurrent,
    attention,
    embedding,
    generative,
    many,
    transfer,
    precision,
    dense,
    optimizers,
    applications,
    further,
)

CONFIGURATIONS: dict[str, Configuration] = {
    configuration.name: configuration for family in _FAMILIES for configuration in family.CONFIGURATIONS
}

# A name that is given twice would hide a configuration.
assert len(CONFIGURATIONS) == sum(len(family.CONFIGURATIONS) for family in _FAMILIES)
