"""A training rehearsed on the CPU under the allocator that serves GPUs, in a process of its own."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import keras

from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.subject import require_subject, require_tensorflow
from tensorboard_plugin_memest.measure.handover import PAYLOAD, Handover, as_build, packed, portable, settings
from tensorboard_plugin_memest.measure.told import limit_of, player_environment, read_told
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.rehearsal import Rehearsal

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tensorboard_plugin_memest.measure.player import main; main(sys.argv[2])"
)


def rehearse(
    build: keras.Model | Callable[[], keras.Model],
    *,
    batch_size: int | None,
    memory_limit: int | str | None = None,
    steps: int = 3,
    **as_for_estimate: Any,
) -> Rehearsal:
    """Trains for a few steps on made-up data, on the CPU, under the allocator that serves GPUs.

    A fresh process builds the model and trains it with `fit`; nothing happens to the model or the devices of this one.
    It has one inter-op thread and oneDNN's kernels, which is the closest to a GPU that a CPU comes. It takes real time,
    and real memory: up to what the estimate says, or up to the limit.

    Args:
        build: a function without arguments that returns a model, whichever way it was defined; or a model, which is
            made again from its configuration.
        batch_size: examples a step; None for the model's own fixed batch size, else 32.
        memory_limit: the most that the allocator may hand out: bytes, or text such as `"9.29GiB"`, rounded down to
            whole MiB. None for TensorFlow's own default, 64 GiB.
        steps: how many steps to train.
        **as_for_estimate: as for `memest.estimate`; they decide how the model is trained, too.

    Returns:
        A Rehearsal, true if it completed; all its sizes are bytes.

    Raises:
        HostTooSmallError: (a ValueError and a MemoryError) this host has too little memory; it says how much it takes.
        RehearsalError: (a RuntimeError) the training failed, and not for lack of memory.
        ValueError: an argument is wrong, or `build` cannot be handed to another process.
        TypeError: `build` is neither a model nor a function that returns one, or an argument is unknown.
    """
    inspect.signature(estimate).bind(build, batch_size=batch_size, **as_for_estimate)
    require_tensorflow()
    require_subject(build, "The first argument of rehearse")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise UsageError(f"steps is how many steps to train, an integer of at least 1, not {steps!r}.")
    environment = player_environment(memory_limit)
    handover = Handover(as_build(build), batch_size, steps, portable(as_for_estimate), settings())
    data = packed(handover)
    with tempfile.TemporaryDirectory(prefix="memest-rehearsal-") as place:
        with open(os.path.join(place, PAYLOAD), "wb") as file:
            file.write(data)
        # Its output goes to a file: a pipe that nobody reads would block it.
        with open(os.path.join(place, "output"), "w+") as output:
            player = subprocess.run(
                [sys.executable, "-c", _START, json.dumps(sys.path), place],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
            output.seek(0)
            return read_told(place, player.returncode, output.read(), limit_of(environment))
