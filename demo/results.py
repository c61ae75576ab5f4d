"""What the runs came to, read back from their event files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from demo.runs import RUNS
from tensorboard_plugin_memest.log.metadata import SUBDIRECTORY, parse_content
from tensorboard_plugin_memest.log.record import Notes, Record, decode
from tensorboard_plugin_memest.memory.comparison import compare_devices
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks
from tensorboard_plugin_memest.memory.units import MIB, format_bytes, parse_bytes

BUILD = "build"


@dataclass(frozen=True)
class Result:
    """One run's records.

    Attributes:
        estimate: the prediction.
        measured: the measured peak of each phase, of steps without the data pipeline, in bytes; empty when the run was
            not trained.
        notes: why something was not measured.
    """

    estimate: Estimate
    measured: Mapping[str, int]
    notes: tuple[str, ...]

    @property
    def measured_bytes(self) -> int | None:
        """The highest measured peak of any step itself; None when the run was not trained."""
        return max((size for phase, size in self.measured.items() if phase != BUILD), default=None)


def read_records(run_directory: Path) -> list[Record]:
    """Everything of memest's in the run in `run_directory`, in the order in which it was written."""
    records = []
    for path in sorted((run_directory / SUBDIRECTORY).glob("*tfevents*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                kind = parse_content(value.metadata.plugin_data.content).kind
                # The loader has turned the record's text into a tensor of one string.
                records.append(decode(kind, value.tensor.string_val[0]))
    return records


def read_result(run_directory: Path) -> Result:
    """The records of the run in `run_directory`.

    Raises:
        ValueError: there is no estimate among them.
    """
    estimate = None
    peaks: dict[str, MeasuredPeaks] = {}
    notes: tuple[str, ...] = ()
    for record in read_records(run_directory):
        if isinstance(record, Estimate):
            estimate = record
        elif isinstance(record, MeasuredPeaks):
            peaks[record.device] = record
        elif isinstance(record, Notes):
            notes = record.sentences
    if estimate is None:
        raise ValueError(f"{run_directory} holds no estimate of memest's.")
    measured = dict(compare_devices(estimate, peaks.values()).phases)
    before = [one.before_bytes for one in peaks.values() if one.before_bytes is not None]
    if before:
        measured[BUILD] = max(before)
    return Result(estimate, measured, notes)


def as_table(results: dict[str, Result], limit: str) -> Table:
    """The table the demo ends with: one row a run, with the phase that takes most."""
    table = Table(title=f"Memory of the training, against {limit}", title_justify="left")
    table.add_column("run")
    table.add_column("what it is")
    for name in ("predicted peak", "can be", "measured peak", "beyond that"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    about = {run.name: run.about for run in RUNS}
    for name, result in results.items():
        predicted, measured = result.estimate.peak_bytes, result.measured_bytes
        # The order in which several threads run a step decides.
        lowest, highest = result.estimate.peak_phase.peak_range
        table.add_row(
            name,
            about[name],
            format_bytes(predicted),
            "" if lowest == highest else f"{format_bytes(lowest)} to {format_bytes(highest)}",
            "not trained" if measured is None else format_bytes(measured),
            "" if measured is None else _beyond(measured, lowest, highest),
            result.estimate.fits(parse_bytes(limit)).outcome,
        )
    return table


def _beyond(measured: int, lowest: int, highest: int) -> str:
    """How far what was measured lies outside of what can be, relative to the nearer end."""
    nearest = min(max(measured, lowest), highest)
    return "no" if measured == nearest else f"{(measured - nearest) / nearest:+.1%}"


def as_markdown(results: Mapping[str, Result]) -> str:
    """Each phase as it was predicted (and can be, by the order of ops) and measured, in MiB, for the documentation."""
    phases = {BUILD: "build", "first_step": "first step", "step": "step"}
    columns = [
        "run",
        *(f"predicted: {told}" for told in phases.values()),
        *(f"measured: {told}" for told in phases.values()),
    ]
    about = {run.name: run.about for run in RUNS}
    rows = [columns, ["---"] * len(columns)]
    for name, result in results.items():
        predicted = []
        for phase in (result.estimate.phases[phase] for phase in phases):
            lowest, highest = phase.peak_range
            spread = "" if lowest == highest else f" ({lowest / MIB:.0f} to {highest / MIB:.0f})"
            predicted.append(f"{phase.peak_bytes / MIB:.1f}{spread}")
        measured = [f"{result.measured[phase] / MIB:.1f}" if phase in result.measured else "" for phase in phases]
        rows.append([f"`{name}` ({about[name]})", *predicted, *measured])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
