"""Whether the host has the memory that a rehearsal takes."""

from __future__ import annotations

from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.units import GIB, format_bytes

# What a process with TensorFlow and Keras holds beside the tensors, code that compiles included.
OVERHEAD_BYTES = GIB


def too_little_room(estimate: Estimate | None, limit_bytes: int | None, available: int | None) -> str | None:
    """Why the host cannot play a training, in words; None if it can, or if nobody knows.

    Args:
        estimate: of the training.
        limit_bytes: what the allocator may use: a training that needs more dies there, and takes no more of the host.
        available: what the host has left.
    """
    if estimate is None or available is None:
        return None
    name, phase = max(estimate.phases.items(), key=lambda entry: entry[1].peak_range[1])
    most = phase.peak_range[1]
    needed = (most if limit_bytes is None else min(most, limit_bytes)) + OVERHEAD_BYTES
    if needed <= available:
        return None
    subject = estimate.subject
    reached = "" if limit_bytes is None or most <= limit_bytes else f", of which it may use {format_bytes(limit_bytes)}"
    return (
        f"This host has too little memory to rehearse {subject.model_name!r} at batch size {subject.batch_size}: the "
        f"phase {name!r} needs up to {format_bytes(most)}{reached}, and with {format_bytes(OVERHEAD_BYTES)} for the "
        f"process itself that is {format_bytes(needed)} ({needed:,} bytes); {format_bytes(available)} are "
        f"available. Rehearse on a host with more, pass a smaller batch_size, or a memory_limit of less than "
        f"{format_bytes(max(available - OVERHEAD_BYTES, 0))} to see where it dies."
    )
