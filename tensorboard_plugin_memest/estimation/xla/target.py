"""Whose compiler is asked for a step: that of this machine's GPU where the run is for one and one is there."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from tensorboard_plugin_memest.estimation.device import CPU, GPU, Device

_OTHER_THAN_THE_GPUS = (
    "XLA's compiler for the CPU was asked how it lays out the step's memory; the one for the GPU fuses and orders it "
    "differently, and its convolutions and matrix products take workspace of their own."
)


@dataclass(frozen=True)
class Target:
    """What a step is compiled for.

    Attributes:
        kind: `"CPU"` or `"GPU"`.
        name: the GPU's name and compute capability, which decide about the code; empty for a CPU.
    """

    kind: str
    name: str = ""

    def notes(self, device: Device) -> list[str]:
        """What an estimate for `device` has to say of it."""
        if self.kind == GPU:
            return [
                f"XLA's compiler for this machine's GPU ({self.name}) was asked how it lays out the step's memory. "
                "Nobody has compared what it says with a run on a GPU."
            ]
        return [_OTHER_THAN_THE_GPUS] if device.kind == GPU else []


ON_CPU = Target(CPU)


def targets(device: Device) -> list[Target]:
    """What a step that runs on `device` can be compiled for on this machine, the best first."""
    if device.kind != GPU:
        return [ON_CPU]
    return [*(Target(GPU, name) for name in _names_of_gpus()[:1]), ON_CPU]


def _names_of_gpus() -> list[str]:
    found = [tf.config.experimental.get_device_details(one) for one in tf.config.list_physical_devices("GPU")]
    return [f"{one.get('device_name', GPU)}, compute capability {one.get('compute_capability')}" for one in found]
