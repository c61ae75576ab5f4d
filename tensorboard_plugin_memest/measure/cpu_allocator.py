"""The allocator that serves GPUs, put in charge of the CPU: by environment variables that TensorFlow reads once."""

from __future__ import annotations

import os
import sys

from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.units import MIB, format_bytes, parse_bytes

USE_BFC = "TF_CPU_ALLOCATOR_USE_BFC"
BFC_LIMIT = "TF_CPU_BFC_MEM_LIMIT_IN_MB"
WHAT_TO_DO = (
    f"Set {USE_BFC}=1 in the environment before TensorFlow is imported, or begin the script with "
    "memest.use_gpu_allocator_on_cpu()."
)


class TooLateError(UsageError, RuntimeError):
    """TensorFlow has made its devices already. A RuntimeError too, as TensorFlow raises for settings that come late."""


def use_gpu_allocator_on_cpu(limit: int | str | None = None) -> None:
    """Makes TensorFlow's CPU device use the BFC allocator, the one that serves GPUs.

    After it `tf.config.experimental.get_memory_info("CPU:0")` counts every byte, profiles hold every allocation, and
    with a limit the CPU runs out of memory as a GPU of that size would. It sets environment variables, which this
    process's children inherit, so it has to come before TensorFlow makes its first device: before the first tensor,
    model or `tf.config.list_logical_devices()`. Importing TensorFlow before is fine.

    Args:
        limit: the most that the allocator may hand out: bytes, or text such as `"9.29GiB"`. TensorFlow takes whole
            MiB, so it is rounded down to those. None for TensorFlow's own default, 64 GiB.

    Raises:
        ValueError: `limit` is no memory size or less than 1 MiB, or it is too late (TooLateError, a RuntimeError too).
        TypeError: `limit` is neither an integer nor text.
    """
    wanted = allocator_environment(limit)
    if _devices_exist():
        if _counts() and bfc_limit() == (None if limit is None else int(wanted[BFC_LIMIT]) * MIB):
            return
        call = f"memest.use_gpu_allocator_on_cpu({'' if limit is None else repr(limit)})"
        raise TooLateError(
            f"It is too late for {call}: this process has made its TensorFlow devices already, with "
            f"{_in_words()}, and they keep their allocator. Call it before the first tensor, model or "
            "tf.config.list_logical_devices(), best right after the imports; in a notebook restart the kernel first. "
            f"Or set {' '.join(f'{name}={value}' for name, value in wanted.items())} in the environment."
        )
    os.environ.pop(BFC_LIMIT, None)
    os.environ.update(wanted)


def allocator_environment(limit: int | str | None) -> dict[str, str]:
    """The environment variables that put BFC in charge of the CPU, with `limit` as `use_gpu_allocator_on_cpu` has it.

    Raises:
        ValueError: `limit` is no memory size or less than 1 MiB.
        TypeError: `limit` is neither an integer nor text.
    """
    if limit is None:
        return {USE_BFC: "1"}
    megabytes = parse_bytes(limit) // MIB
    if megabytes < 1:
        raise UsageError(
            f"limit={limit!r} is less than 1 MiB, which is the least that TensorFlow's allocator can be given."
        )
    return {USE_BFC: "1", BFC_LIMIT: str(megabytes)}


def bfc_is_asked_for() -> bool:
    """Whether the environment puts BFC in charge of the CPU."""
    # As TensorFlow's ReadBoolFromEnvVar reads it; anything else it refuses and takes for false.
    return os.environ.get(USE_BFC, "").lower() in ("1", "true")


def bfc_limit() -> int | None:
    """The limit that the environment gives BFC on the CPU, in bytes; None without one."""
    try:
        megabytes = int(os.environ.get(BFC_LIMIT, ""))
    except ValueError:
        return None
    return megabytes * MIB if megabytes > 0 else None


def _devices_exist() -> bool:
    """Whether TensorFlow has made the devices of this process."""
    if "tensorflow" not in sys.modules:
        return False
    from tensorflow.python.eager import context

    # TensorFlow has no public name for it. Where the attribute is gone, nobody is told that it is too late.
    return getattr(context.context(), "_context_handle", None) is not None


def _counts() -> bool:
    """Whether the CPU device that exists is BFC's. The environment alone may have been set too late."""
    if not bfc_is_asked_for():
        return False
    import tensorflow as tf

    try:
        tf.config.experimental.get_memory_info("CPU:0")
    except (ValueError, tf.errors.OpError):
        return False
    return True


def _in_words() -> str:
    if not _counts():
        return "TensorFlow's own CPU allocator"
    limit = bfc_limit()
    return "the BFC allocator and " + ("no limit" if limit is None else f"a limit of {format_bytes(limit)}")
