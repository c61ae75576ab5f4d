"""`python -m memest`: rehearses a training script without a change to it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from tensorboard_plugin_memest.measure.script import rehearse_script
from tensorboard_plugin_memest.measure.told import HostTooSmallError, RehearsalError
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.rehearsal_text import print_rehearsal

COMPLETED, DIED, REFUSED = 0, 1, 2

_EPILOG = """\
The script runs as it is, in a process of its own, on the CPU with the allocator that serves GPUs, until it has trained
the steps that were asked for. Exit status: 0 if it got that far, 1 if it ran out of memory or failed, 2 if it could not
be rehearsed.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: the command line without the program's name; None for this process's.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m memest", description="Memory of Keras trainings.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    rehearse = commands.add_parser(
        "rehearse",
        help="train a few steps of a script on the CPU as if it were a GPU of a given size",
        usage="python -m memest rehearse (SCRIPT | -m MODULE) [--memory-limit SIZE] [--max-steps N] [-- ARGUMENT...]",
        epilog=_EPILOG,
    )
    what = rehearse.add_mutually_exclusive_group(required=True)
    what.add_argument("script", nargs="?", help="the training script")
    what.add_argument("-m", dest="module", metavar="MODULE", help="a module to run as `python -m` does, from a package")
    rehearse.add_argument(
        "--memory-limit", metavar="SIZE", help="memory of the GPU, such as 9.29GiB or 24GB; without it 64 GiB"
    )
    steps = "training steps after which the script is ended (default: 5)"
    rehearse.add_argument("--max-steps", type=int, default=5, metavar="N", help=steps)
    own, of_the_script = _parted(sys.argv[1:] if arguments is None else arguments)
    given, unknown = parser.parse_known_args(own)
    if unknown:
        rehearse.error(f"{' '.join(unknown)} is no argument of rehearse; what is the script's own goes behind --")
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        played = rehearse_script(
            given.module or given.script,
            of_the_script,
            memory_limit=given.memory_limit,
            max_steps=given.max_steps,
            is_module=given.module is not None,
        )
    except (UsageError, HostTooSmallError) as error:
        errors.print(str(error), markup=False)
        return REFUSED
    except RehearsalError as error:
        errors.print(str(error), markup=False)
        return DIED
    print_rehearsal(played, Console(highlight=False))
    return COMPLETED if played.completed else DIED


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before the first `--`, and what stands behind it."""
    if "--" not in arguments:
        return list(arguments), []
    where = list(arguments).index("--")
    return list(arguments[:where]), list(arguments[where + 1 :])
