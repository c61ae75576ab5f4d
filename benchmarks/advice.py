"""Holds the savings that advice predicts against those of real trainings with the same change.

python -m benchmarks.advice [--match PATTERN] [--lever PATTERN] [--steps N] [--json build/advice.json]

Each training runs in two fresh processes under the CPU's BFC allocator with oneDNN and one inter-op thread. Peaks vary
from step to step, so what was saved is a range; an error is how far the predicted saving lies outside of it, relative
to the peak as it is.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.about import about
from benchmarks.about import console as terminal
from benchmarks.levers import BASE, predict, train
from benchmarks.processes import ONE, ProcessError, in_process
from tensorboard_plugin_memest.memory.units import format_bytes

MODELS = (
    "founding halved, Dense 16, Adam, batch 4",
    "VGG-like, batch 16",
    "residual CNN, Adam, batch 64",
    "transformer, AdamW, batch 8",
    "words, large softmax, batch 32",
    "LSTM 768, batch 32",
)
PROCESSES = 2
WITHIN = 0.03


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="models whose name has this regular expression")
    parser.add_argument("--lever", default="", help="changes whose name has this regular expression")
    parser.add_argument("--steps", type=int, default=8, help="measured steps a process")
    parser.add_argument("--json", type=Path, default=Path("build/advice.json"))
    args = parser.parse_args()
    console = terminal()
    rows: list[dict[str, Any]] = []
    args.json.parent.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        if not re.search(args.match, model):
            continue
        predicted = in_process(predict, model, args.lever, threads=ONE)
        base = _peaks(model, BASE, predicted["estimate"], args.steps)
        for lever, told in predicted["levers"].items():
            if lever == BASE:
                continue
            try:
                peaks = _peaks(model, lever, predicted["estimate"], args.steps)
            except ProcessError as error:
                console.print(f"{model}, {lever}: {str(error).splitlines()[-1]}", style="red", highlight=False)
                continue
            rows.append(_row(model, lever, predicted["levers"][BASE], told, base, peaks))
            console.print(f"[dim]{model}, {lever}: {rows[-1]['error']:+.1%}[/]", highlight=False)
            args.json.write_text(json.dumps({**about(), "rows": rows}, indent=1))
    console.print(_table(rows))
    within = sum(abs(row["error"]) <= WITHIN for row in rows)
    levers = {row["lever"] for row in rows}
    models = {row["model"] for row in rows}
    console.print(
        f"{len(rows)} changes ({len(levers)} kinds, {len(models)} models): {within} within {WITHIN:.0%} of the peak",
        highlight=False,
    )


def _peaks(model: str, lever: str, estimate: str, steps: int) -> list[int]:
    """Of all steps, the first included, since that is what has to fit."""
    runs = [in_process(train, model, lever, estimate, steps, threads=ONE) for _ in range(PROCESSES)]
    return [max(peaks[0], peak) for peaks in runs for peak in peaks[1:]]


def _row(
    model: str, lever: str, before: dict[str, Any], after: dict[str, Any], base: list[int], peaks: list[int]
) -> dict[str, Any]:
    saved = before["peak"] - after["peak"]
    low, high = min(base) - max(peaks), max(base) - min(peaks)
    nearest = min(max(saved, low), high)
    return {
        "model": model,
        "lever": lever,
        "title": after["title"],
        "predicted": [before["peak"], after["peak"]],
        "measured": [[min(base), max(base)], [min(peaks), max(peaks)]],
        "saved": saved,
        "saved_measured": [low, high],
        "error": (saved - nearest) / max(base),
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Savings of changes: predicted against measured")
    table.add_column("model")
    table.add_column("change")
    for name in ("peak as it is", "predicted after", "measured after", "error"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row["model"],
            row["lever"],
            _span(row["measured"][0]),
            format_bytes(row["predicted"][1]),
            _span(row["measured"][1]),
            f"{row['error']:+.1%}",
        )
    return table


def _span(ends: list[int]) -> str:
    return " to ".join(dict.fromkeys(format_bytes(end) for end in ends))


if __name__ == "__main__":
    main()
