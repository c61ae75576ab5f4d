"""Predicted against measured peaks: build, first step and later steps, with one inter-op thread and with all.

python -m benchmarks.accuracy [--steps 10] [--processes 2] [--json build/accuracy.json]

Every model is measured in fresh processes under the CPU's BFC allocator with oneDNN on, and estimated in another. An
error is how far the estimate lies outside the range of the measured peaks, relative to the nearer end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.models import MODELS
from tensorboard_plugin_memest.memory.units import format_bytes

SETTINGS = {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
PHASES = ("build", "first_step", "step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, default=Path("build/accuracy.json"))
    args = parser.parse_args()
    console = Console()
    rows = []
    for threads in ("one thread", "all threads"):
        for name in MODELS:
            rows.append(_row(name, threads, args.steps, args.processes))
            console.print(f"[dim]{name}, {threads}: {rows[-1]['seconds']:.1f} s to estimate[/]", highlight=False)
    console.print(_table(rows))
    for threads in ("one thread", "all threads"):
        for phase in PHASES:
            errors = [row["phases"][phase]["error"] for row in rows if row["threads"] == threads]
            console.print(
                f"{threads}, {phase}: median error {statistics.median(errors):.1%}, worst {max(errors):.1%}",
                highlight=False,
            )
    args.json.parent.mkdir(parents=True, exist_ok=True)
    versions = {name: metadata.version(name) for name in ("keras", "tensorboard-plugin-memest")}
    about = {"versions": versions, "cores": os.cpu_count(), "machine": platform.machine()}
    args.json.write_text(json.dumps({**about, "rows": rows}, indent=1))


def _row(name: str, threads: str, steps: int, processes: int) -> dict[str, Any]:
    one = ["--one-thread"] if threads == "one thread" else []
    estimate = _run("benchmarks.estimate", name, *one)
    runs = [_run("benchmarks.measure", name, "--steps", str(steps), *one) for _ in range(processes)]
    measured = {
        "build": [run["build"] for run in runs],
        "first_step": [run["steps"][0] for run in runs],
        "step": [peak for run in runs for peak in run["steps"][1:]],
    }
    phases = {}
    for phase in PHASES:
        predicted, low, high = estimate["phases"][phase]
        least, most = min(measured[phase]), max(measured[phase])
        error = max(least - predicted, predicted - most, 0) / (least if predicted < least else most)
        phases[phase] = {
            "predicted": predicted,
            "range": [low, high],
            "measured": [least, most],
            "error": error,
            "held": sum(low <= peak <= high for peak in measured[phase]) / len(measured[phase]),
        }
    return {"model": name, "threads": threads, "seconds": estimate["seconds"], "phases": phases}


def _run(module: str, *arguments: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, **SETTINGS},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Predicted peaks against measured ones; errors are distances from the measured range")
    table.add_column("model, threads")
    for phase in PHASES:
        table.add_column(f"{phase}: predicted", justify="right")
        table.add_column("measured", justify="right")
        table.add_column("error", justify="right")
    for row in rows:
        cells = []
        for phase in PHASES:
            found = row["phases"][phase]
            ends = dict.fromkeys(format_bytes(end) for end in found["measured"])
            cells += [format_bytes(found["predicted"]), " to ".join(ends), f"{found['error']:.1%}"]
        table.add_row(f"{row['model']}, {row['threads']}", *cells)
    return table


if __name__ == "__main__":
    main()
