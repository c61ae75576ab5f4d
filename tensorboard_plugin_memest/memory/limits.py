"""What people call a device's memory, as bytes: a number, a size in words, a GPU's or an instance type's name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tensorboard_plugin_memest.memory.catalogue import APPLE, CATALOGUE, GpuModel
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.units import GIB, format_bytes, looks_like_bytes, parse_bytes

# Words that say nothing about which device it is.
_VENDORS = r"nvidia|geforce|amd|radeon|instinct|apple|tesla|quadro|aws|ec2|azure|gcp|google|cloud"
_CONNECTORS = r"gpu|graphics|generation|pcie|sxm\d*|hbm\w*|tensor|core|unified|memory|ram|colab|kaggle|card"
_NOISE = re.compile(rf"\b(?:{_VENDORS}|{_CONNECTORS})\b")
_SIZE = re.compile(r"(\d+)\s*gi?b\b")
# A number with or without a unit, however it is written: no name of a device.
_NUMBER = re.compile(r"[-+\s]*\d[\d.,\s_]*[kmgt]?i?b?\s*", re.IGNORECASE)
# What an estimate assumes for a GPU that nobody named.
CAPABILITY_UNKNOWN = (
    "The GPU's compute capability is not known; it was taken for 8.0 (Ampere) or newer. Older ones copy more around "
    "convolutions: name the GPU, as in device='GTX 1080'."
)
_AMPERE = (8, 0)
_FAMILIES = ("rtx", "gtx", "rx", "mi", "titan")


@dataclass(frozen=True)
class Limit:
    """A limit in bytes, and what it comes from.

    Attributes:
        bytes: what the allocator may use.
        device: the device that was named; None for a size.
    """

    bytes: int
    device: GpuModel | None = None

    def __str__(self) -> str:
        if self.device is None:
            return format_bytes(self.bytes)
        carries = f" with {self.device.carries}" if self.device.carries else ""
        return (
            f"{format_bytes(self.bytes)} ({self.device.name}{carries}: {format_bytes(self.device.memory_bytes)}, of "
            f"which TensorFlow leaves {format_bytes(self.device.reserve_bytes)} alone)"
        )


def resolve_limit(limit: int | str) -> Limit:
    """The limit that is meant.

    Args:
        limit: bytes; text such as `"9.29GiB"` or `"24GB"`; or the name of a device or of an instance type, in any
            usual spelling: `"RTX 3080"`, `"rtx3080"`, `"NVIDIA GeForce RTX 3080 10GB"`, `"A100 80GB"`, `"T4"`,
            `"p3.2xlarge"`. A device gives what TensorFlow would use of it when nothing else does.

    Raises:
        ValueError: the text is neither a size nor a name that is known, or a name of several devices.
        TypeError: it is neither an integer nor text.
    """
    if not isinstance(limit, str) or looks_like_bytes(limit):
        return Limit(parse_bytes(limit))
    device = find_device(limit)
    return Limit(device.usable_bytes, device)


def find_device(name: str) -> GpuModel:
    """The device or instance type that `name` means, in any usual spelling.

    Raises:
        ValueError: none is called so, or several are; the text names them.
    """
    size, wanted = _split(name)
    found = [model for model in CATALOGUE if wanted and _split(model.name)[1] == wanted]
    if not found and wanted:
        # "3080", "4090": the family goes without saying.
        found = [model for model in CATALOGUE if _without_family(_split(model.name)[1]) == wanted]
    fitting = [model for model in found if size is None or size in _sizes(model)]
    usual = [model for model in fitting if model.is_usual]
    chosen = usual if size is None and len(usual) == 1 else fitting
    if len(chosen) == 1:
        return chosen[0]
    if found:
        names = _in_words([model.name for model in found])
        what = "means several devices" if chosen else f"was not sold with {size} GB"
        raise UsageError(f"The device {name!r} {what}. Pass one of {names}, or its memory, such as '24GB'.")
    known = {} if _NUMBER.fullmatch(name) else {_joined(model.name): model.name for model in CATALOGUE}
    near = [known[one] for one in difflib.get_close_matches(_joined(name), list(known), 3, 0.5)]
    hint = f" Did you mean {_in_words(near)}?" if near else ""
    raise UsageError(
        f"{name!r} is not a memory size, nor a device that is known.{hint} Give bytes as an integer, a number with "
        "a unit ('9.29GiB', '24GB'), or a name such as 'RTX 3080', 'A100 80GB', 'M2 Max 64GB' or 'g5.xlarge'."
    )


def _split(name: str) -> tuple[int | None, str]:
    """The memory that a name tells, in GiB, and the rest of it without spaces and words that say nothing."""
    text = name.lower().strip().removeprefix("standard_")
    if text in _INSTANCE_NAMES:
        return None, _joined(text)
    text = _NOISE.sub(" ", re.sub(r"[-_()]", " ", text))
    # What is sold as one for laptops is called mobile in lists of hardware.
    text = re.sub(r"\bmobile\b", "laptop", text)
    match = _SIZE.search(text)
    if match is None:
        return None, _joined(text)
    return int(match[1]), _joined(text[: match.start()] + text[match.end() :])


_INSTANCE_NAMES = {model.name.lower() for model in CATALOGUE if model.carries}


def _joined(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _without_family(name: str) -> str:
    return next((name.removeprefix(family) for family in _FAMILIES if name.startswith(family)), name)


def _sizes(model: GpuModel) -> set[int]:
    """The GiB that people say a device has: as sold, or as it shows."""
    return {model.sold_bytes // GIB, model.memory_bytes // GIB}


def _in_words(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in dict.fromkeys(names)]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def risks(
    limit: Limit, peak_bytes: int, pool_bytes: int | None, *, on_gpu: bool, grows: bool, for_any: bool = False
) -> tuple[str, ...]:
    """What may go wrong within the limit, apart from the peak itself, one sentence each.

    Args:
        limit: the limit.
        peak_bytes: the highest predicted peak.
        pool_bytes: what the pool would have reserved by the end of the last phase; None when unknown.
        on_gpu: whether the device is a GPU.
        grows: whether the pool gets its memory as it needs it, region by region.
        for_any: whether the estimate is for no certain GPU.
    """
    found = []
    capability = limit.device.compute_capability if limit.device else None
    if for_any and limit.device is not None and capability is not None and capability < _AMPERE:
        name = limit.device.carries or limit.device.name
        number = ".".join(map(str, capability))
        found.append(
            f"The estimate is for GPUs of compute capability 8.0 and newer. On a {name} ({number}) convolutions in "
            f"float32 copy what they take and give; memest.estimate(..., device={name!r}) counts that."
        )
    if pool_bytes is not None and peak_bytes <= limit.bytes < pool_bytes:
        found.append(
            f"The tensors fit, but their places do not: with the gaps between them the pool reaches "
            f"{format_bytes(pool_bytes)}, so an allocation may fail for want of one piece of memory."
        )
    if on_gpu and grows:
        found.append(
            "With memory growth on, the pool gets regions that double in size and never gives them back; a region "
            "larger than what is left of the GPU is asked for again smaller, and gaps add up. A preallocated pool "
            "(growth off) splits less."
        )
    if limit.device is None and on_gpu:
        found.append(
            "On top of the allocator's memory a GPU holds its context and libraries, several hundred MiB, and "
            "TensorFlow leaves 225 to 1800 MiB of it alone; the limit should be what is left (name the GPU to have "
            "TensorFlow's share taken off)."
        )
    elif limit.device is not None and limit.device.vendor != APPLE:
        found.append(
            f"An idle {limit.device.name} is assumed: a display, other processes and the context of this one, several "
            "hundred MiB, take their share first."
        )
    return tuple(found)
