"""What a process that rehearses tells, read by the one that started it. No TensorFlow."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from typing import Any

from tensorboard_plugin_memest.measure.cpu_allocator import BFC_LIMIT, allocator_environment
from tensorboard_plugin_memest.measure.explain import explain
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.explanation_text import HOST
from tensorboard_plugin_memest.memory.rehearsal import MeasuredPhase, Rehearsal
from tensorboard_plugin_memest.memory.timeline import Timeline
from tensorboard_plugin_memest.memory.units import MIB

FILE = "told.json"

HOW_IT_WAS_PLAYED = (
    "Played on the CPU with TensorFlow's BFC allocator, one inter-op thread and oneDNN's kernels, which is the closest "
    "to a GPU: kernels with little scratch memory, one after the other. Its pool grows by regions that double, as on a "
    "GPU with memory growth; a GPU that takes its pool at once has it in one piece. What a GPU holds beside its "
    "allocator, and the scratch of cuDNN, is not in it."
)


class RehearsalError(RuntimeError):
    """The training that was rehearsed failed, and not for lack of memory."""


class HostTooSmallError(UsageError, MemoryError):
    """The host has too little memory to rehearse this; the text says how much it takes."""


def player_environment(limit: int | str | None) -> dict[str, str]:
    """The environment of a process that rehearses: this process's, on a CPU that counts as a GPU does.

    Raises:
        ValueError: `limit` is no memory size.
        TypeError: `limit` is neither an integer nor text.
    """
    inherited = {name: value for name, value in os.environ.items() if name != BFC_LIMIT}
    return {
        **inherited,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_ENABLE_ONEDNN_OPTS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
        # Where TensorFlow ends the process itself, only its own warnings tell what of.
        "TF_CPP_MIN_LOG_LEVEL": "1",
        **allocator_environment(limit),
    }


def limit_of(environment: dict[str, str]) -> int | None:
    """The limit that an environment gives the allocator, in bytes; None without one."""
    return int(environment[BFC_LIMIT]) * MIB if BFC_LIMIT in environment else None


def read_told(place: str, returncode: int, output: str, limit_bytes: int | None) -> Rehearsal:
    """The rehearsal of a process that ended.

    Args:
        place: the directory it told in.
        returncode: its exit status; negative for the signal that ended it.
        output: what it wrote to its standard error.
        limit_bytes: what its allocator was allowed.

    Raises:
        HostTooSmallError: it was refused.
        RehearsalError: it failed otherwise.
    """
    told = _load(os.path.join(place, FILE))
    if told.get("refused"):
        raise HostTooSmallError(told["refused"])
    if told.get("failed_with"):
        raise RehearsalError(
            f"The training that was rehearsed failed, and not for lack of memory: {told['failed_with']}"
            + (f"\n\nIn the process that rehearsed it:\n{told['failed']}" if told["failed"] else "")
        )
    estimate = Estimate.from_json(told["estimate"]) if told.get("estimate") else None
    explanation = Explanation.from_dict(told["explanation"]) if told.get("explanation") else None
    completed = bool(told.get("completed"))
    if not completed and explanation is None:
        explanation = _ended(returncode, told.get("phase"), output, estimate, limit_bytes)
    return Rehearsal(
        completed=completed,
        phases={phase["name"]: MeasuredPhase(**phase) for phase in told.get("phases", ())},
        timeline=Timeline.from_dict(told["timeline"]) if told.get("timeline") else None,
        explanation=explanation,
        estimate=estimate,
        limit_bytes=limit_bytes,
        notes=(HOW_IT_WAS_PLAYED, *told.get("notes", ())),
    )


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path) as file:
            told: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return {}
    return told


def _ended(
    returncode: int, phase: str | None, output: str, estimate: Estimate | None, limit_bytes: int | None
) -> Explanation:
    """Why a process ended that could not tell itself.

    Some kernels, such as oneDNN's, go on without the memory that they were refused. That ends the process with a signal
    right after TensorFlow has logged what was refused.

    Raises:
        RehearsalError: it was not for lack of memory.
    """
    if returncode == -signal.SIGKILL:
        return Explanation(
            source=HOST,
            message="The system killed the process that rehearsed, as it does when the host's memory runs out.",
            phase=phase,
            advice=("Rehearse with a memory_limit that the host has, or on a host with more memory.",),
        )
    how = f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
    found = explain(output, estimate, phase=phase, limit_bytes=limit_bytes) if returncode < 0 else None
    if found is None:
        raise RehearsalError(f"The process that rehearsed ended with {how} before it was done:\n{output[-4000:]}")
    return replace(found, message=f"{found.message} Then TensorFlow itself ended the process, with {how}.")
