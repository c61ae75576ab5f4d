"""Makes the demo's runs, shows what they came to, and opens TensorBoard on them.

python -m demo [--no-serve] [--phases] [--port N] [--fresh] [--train RUN ...]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from demo.clips import write_clips
from demo.results import as_markdown, as_table, read_result
from demo.runs import REPOSITORY, RUNS, DemoError, is_made, make
from demo.serve import serve

LIMIT = "9.29GiB"


def main() -> int:
    args = _arguments()
    # TensorBoard imports TensorFlow where it finds it. Nothing computes with it in this process, and what it has to say
    # at its start would only stand in the way. The runs have settings of their own.
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", TF_ENABLE_ONEDNN_OPTS="0")
    # Without a terminal the width is unknown, and a table cut to 80 columns would break its numbers.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    clips = args.work.resolve() / "clips"
    runs = args.runs.resolve()
    if args.fresh:
        for folder in (clips, *(runs / run.name for run in RUNS)):
            shutil.rmtree(folder, ignore_errors=True)

    if not clips.is_dir():
        with _stage(console, "Recording birds, and no birds"):
            write_clips(clips)
    try:
        for run in RUNS:
            if not is_made(run, runs):
                with _stage(console, f"Run {run.name} ({run.about})"):
                    make(run, clips=clips, runs=runs, work=args.work.resolve(), train=run.name in args.train)
    except DemoError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return 1

    results = {run.name: read_result(runs / run.name) for run in RUNS}
    console.print(as_table(results, LIMIT))
    if args.phases:
        console.print(as_markdown(results), markup=False, soft_wrap=True)
    for name, result in results.items():
        for note in result.notes:
            console.print(f"{name}: {note}", markup=False, soft_wrap=True)
    if args.serve:
        serve(runs, args.port, console, f"p.memest.run={RUNS[0].name}&p.memest.limit={LIMIT}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description="Fills a log directory worth looking at.")
    parser.add_argument("--no-serve", dest="serve", action="store_false", help="make the runs and stop there")
    parser.add_argument("--phases", action="store_true", help="print the phases, too, as docs/estimates.md has them")
    parser.add_argument("--port", type=int, help="port of TensorBoard (default: 6006, or the next free one)")
    parser.add_argument("--fresh", action="store_true", help="make everything anew, and keep nothing of before")
    names = [run.name for run in RUNS]
    parser.add_argument(
        "--train",
        nargs="*",
        metavar="RUN",
        choices=names,
        default=names,
        help=f"train only these and estimate the others (default, where memory allows: {' '.join(names)})",
    )
    parser.add_argument("--runs", type=Path, default=REPOSITORY / "runs", help="the log directory (default: runs)")
    parser.add_argument(
        "--work",
        type=Path,
        default=REPOSITORY / "build/demo",
        help="where recordings and unfinished runs are; on the file system of --runs (default: build/demo)",
    )
    return parser.parse_args()


@contextmanager
def _stage(console: Console, text: str) -> Iterator[None]:
    """Tells what is being done, and how long it took; with a running clock where the terminal can draw one."""
    started = time.monotonic()
    if console.is_terminal and not console.is_dumb_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            progress.add_task(text)
            yield
    else:
        console.print(f"{text} ...")
        yield
    console.print(f"{text}: {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
