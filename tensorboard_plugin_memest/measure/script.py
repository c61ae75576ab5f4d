"""A training script rehearsed without a change to it, in a process of its own. No TensorFlow in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from tensorboard_plugin_memest.measure.told import limit_of, player_environment, read_told
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.rehearsal import Rehearsal

_START = (
    "import json, sys; sys.path[:], *given = json.loads(sys.argv[1]); "
    "from tensorboard_plugin_memest.measure.script_player import main; main(*given)"
)


def rehearse_script(
    script: str, arguments: Sequence[str] = (), *, memory_limit: int | str | None = None, max_steps: int = 5
) -> Rehearsal:
    """Runs a script on the CPU under the allocator that serves GPUs until it has trained `max_steps` steps of `fit`.

    Args:
        script: path of the script; what it prints goes where this process's output goes.
        arguments: the script's own.
        memory_limit: as for `memest.rehearse`.
        max_steps: after so many steps the script is ended.

    Raises:
        ValueError: there is no such script, or an argument is wrong.
        HostTooSmallError: (a ValueError and a MemoryError) this host has too little memory.
        RehearsalError: (a RuntimeError) the script failed, and not for lack of memory.
    """
    if not os.path.isfile(script):
        raise UsageError(f"There is no script {script!r}. Pass the path of a Python file that trains.")
    if max_steps < 1:
        raise UsageError(f"The number of steps to rehearse is at least 1, not {max_steps}.")
    environment = player_environment(memory_limit)
    # The interpreter puts its own first entry there, which is this program's, not the script's.
    path = [entry for entry in sys.path if entry]
    with tempfile.TemporaryDirectory(prefix="memest-rehearsal-") as place:
        given = json.dumps([path, place, script, max_steps, list(arguments)])
        player = subprocess.run([sys.executable, "-c", _START, given], env=environment, check=False)
        return read_told(place, player.returncode, "", limit_of(environment))
