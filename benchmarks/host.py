"""Holds the predicted host memory of data pipelines against the measured rise of the resident set.

python -m benchmarks.host [--only TEXT] [--json build/host.json]

Every pipeline runs in a fresh process with one malloc arena, so that memory freed in one thread serves the others. An
error is how far what was measured lies outside the predicted range, from the peak to what malloc may hold beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.host_pipelines import PIPELINES
from tensorboard_plugin_memest.memory.units import format_bytes

SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "MALLOC_ARENA_MAX": "1"}
# What is measured moves by so much from run to run.
_NOISE = 4 * 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="pipelines whose name has this text")
    parser.add_argument("--json", type=Path, default=Path("build/host.json"))
    args = parser.parse_args()
    console = Console(width=120)
    rows = []
    for name in PIPELINES:
        if args.only in name:
            rows.append({"pipeline": name, **_run(name)})
            row = rows[-1]
            console.print(f"[dim]{name}: {row['error']:+.1%}, estimated in {row['seconds']:.2f} s[/]", highlight=False)
    console.print(_table(rows))
    errors = [abs(row["error"]) for row in rows]
    within = sum(error <= 0.1 for error in errors)
    median = statistics.median(errors)
    console.print(
        f"{len(rows)} pipelines: {within} within 10 %, median error {median:.1%}, worst {max(errors):.1%}",
        highlight=False,
    )
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=1))


def _run(name: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.host_measure", name],
        env={**os.environ, **SETTINGS},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    low, measured = answer["predicted"], answer["measured"]
    nearest = min(max(measured, low), low + answer["slack"])
    return {**answer, "error": (nearest - measured) / max(measured, _NOISE)}


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Host memory of data pipelines: predicted against the rise of the resident set")
    table.add_column("pipeline")
    for name in ("predicted", "up to", "measured", "error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row["pipeline"],
            format_bytes(row["predicted"]),
            format_bytes(row["predicted"] + row["slack"]) if row["slack"] else "",
            format_bytes(row["measured"]),
            f"{row['error']:+.1%}",
        )
    return table


if __name__ == "__main__":
    main()
