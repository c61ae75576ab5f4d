"""A training script rehearsed without a change to it, in a process of its own. No TensorFlow in this one."""

from __future__ import annotations

import codecs
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence

from tensorboard_plugin_memest.measure.told import limit_of, player_environment, read_told
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.rehearsal import Rehearsal

# Of what the script's process writes last, so many characters are looked at for why it ended.
_KEPT = 100_000

_START = (
    "import json, sys; sys.path[:], *given = json.loads(sys.argv[1]); "
    "from tensorboard_plugin_memest.measure.script_player import main; main(*given)"
)


def rehearse_script(
    script: str,
    arguments: Sequence[str] = (),
    *,
    memory_limit: int | str | None = None,
    max_steps: int = 5,
    is_module: bool = False,
) -> Rehearsal:
    """Runs a script on the CPU under the allocator that serves GPUs until it has trained `max_steps` steps of `fit`.

    Args:
        script: path of the script; what it prints goes where this process's output goes.
        arguments: the script's own.
        memory_limit: as for `memest.rehearse`.
        max_steps: after so many steps the script is ended.
        is_module: whether `script` is the name of a module, to be run from the working directory as `python -m` does.

    Raises:
        ValueError: there is no such script, or an argument is wrong.
        HostTooSmallError: (a ValueError and a MemoryError) this host has too little memory.
        RehearsalError: (a RuntimeError) the script failed, and not for lack of memory.
    """
    if not is_module and not os.path.isfile(script):
        raise UsageError(f"There is no script {script!r}. Pass the path of a Python file that trains.")
    if max_steps < 1:
        raise UsageError(f"The number of steps to rehearse is at least 1, not {max_steps}.")
    environment = player_environment(memory_limit)
    # The interpreter puts its own first entry there, which is this program's, not the script's.
    path = [entry for entry in sys.path if entry]
    with tempfile.TemporaryDirectory(prefix="memest-rehearsal-") as place:
        given = json.dumps([path, place, script, max_steps, list(arguments), is_module])
        player = subprocess.Popen([sys.executable, "-c", _START, given], env=environment, stderr=subprocess.PIPE)
        errors = _Passed(player)
        try:
            returncode = player.wait()
        except BaseException:
            player.kill()
            player.wait()
            raise
        return read_told(place, returncode, errors.last(), limit_of(environment))


class _Passed(threading.Thread):
    """Passes on what a process writes to its standard error as it comes, and keeps the last of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        assert process.stderr is not None
        self._from = process.stderr
        self._kept = ""
        self.start()

    def run(self) -> None:
        """Reads until all who can write have ended."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        while piece := os.read(self._from.fileno(), 2**16):
            text = decoder.decode(piece)
            sys.stderr.write(text)
            sys.stderr.flush()
            self._kept = (self._kept + text)[-_KEPT:]

    def last(self) -> str:
        """The last that was written by the process, which has ended; those that it started may go on writing."""
        self.join(timeout=1)
        return self._kept
