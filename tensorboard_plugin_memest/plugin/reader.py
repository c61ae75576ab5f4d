"""From TensorBoard's data provider to memory objects, run by run."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from tensorboard import errors
from tensorboard.context import RequestContext
from tensorboard.data import provider

from tensorboard_plugin_memest.log.metadata import PLUGIN_NAME, SUBDIRECTORY, Kind, parse_content, profile_id, tag_for
from tensorboard_plugin_memest.log.record import Notes, Record, decode
from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.headline import Headline
from tensorboard_plugin_memest.memory.host import HostEstimate
from tensorboard_plugin_memest.memory.measured import DeviceTotals, MeasuredBeside, MeasuredPeaks, MeasuredProfile
from tensorboard_plugin_memest.memory.what_if import WhatIf
from tensorboard_plugin_memest.plugin.cache import Cache

# Compressed bytes of the records kept decoded; as Python objects they measured 8 times (a profile) to 20 times
# (an estimate) as large.
_CACHE_BYTES = 16 * 2**20

# Records of which a run has one, whichever of its processes wrote it.
_OF_THE_RUN = frozenset(str(kind) for kind in (Kind.ESTIMATE, Kind.HEADLINE, Kind.HOST, Kind.ADVICE, Kind.WHAT_IF))

# All but the headline, which the estimate has in it.
ALL_KINDS: frozenset[Kind] = frozenset(Kind) - {Kind.HEADLINE}


@dataclass(frozen=True)
class Listed:
    """A record that is there, not read yet.

    Attributes:
        run: the run as TensorBoard names it, memest's subdirectory included.
        tag: its tag.
        step: rises with every record of a tag.
        wall_time: when it was written, in seconds since 1970.
        content: what the tag's metadata says.
        process: which of several processes of the run wrote it, `"worker 1"`; None for the first, or the only one.
    """

    run: str
    tag: str
    step: int
    wall_time: float
    content: bytes
    process: str | None = None


@dataclass
class RunRecords:
    """The latest records of one run.

    Attributes:
        name: the run, as people know it.
        estimate: None without one, or where it was not asked for.
        headline: the little of the estimate that a list shows; as above.
        peaks: one for each device, in natural order.
        beside: what was measured beside the training steps, in natural order.
        totals: what the driver has seen, one for each GPU, in natural order.
        profiles: in the order in which they started.
        notes: sentences about what could not be measured.
        crashed: whether the run ended for lack of memory, and did not go on afterwards.
        crash: why it ended; None if it did not, or where that was not asked for.
        host: the estimate of the data pipeline; None without one.
        advice: what to change; None without one.
        what_if: the training under other choices; None without that.
        began: when its estimate was logged or, without one, its first record, in seconds since 1970; None without any.
        problems: a sentence for each record that could not be read.
    """

    name: str
    estimate: Estimate | None = None
    headline: Headline | None = None
    peaks: list[MeasuredPeaks] = field(default_factory=list)
    beside: list[MeasuredBeside] = field(default_factory=list)
    totals: list[DeviceTotals] = field(default_factory=list)
    profiles: list[MeasuredProfile] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    crashed: bool = False
    crash: Explanation | None = None
    host: HostEstimate | None = None
    advice: Advice | None = None
    what_if: WhatIf | None = None
    began: float | None = None
    problems: list[str] = field(default_factory=list)


Listing = dict[str, list[Listed]]


class Reader:
    """Reads records, each once.

    Args:
        data_provider: TensorBoard's.
    """

    def __init__(self, data_provider: provider.DataProvider) -> None:
        self._provider = data_provider
        self._cache: Cache[Record | str] = Cache(_CACHE_BYTES)

    def listing(self, ctx: RequestContext, experiment: str) -> Listing:
        """Every run that holds records, in natural order, with its records; none is read."""
        found: dict[str, dict[tuple[str, str], Listed]] = {}
        series = self._provider.list_tensors(ctx, experiment_id=experiment, plugin_name=PLUGIN_NAME) or {}
        for run, tags in series.items():
            parent, process = run_and_process(run)
            records = found.setdefault(parent, {})
            for tag, info in tags.items():
                listed = Listed(run, tag, info.max_step, info.max_wall_time, info.plugin_content, process)
                # What is of the run as a whole, its latest writer tells.
                key = (tag, "" if process is None or tag in _OF_THE_RUN else process)
                if key not in records or records[key].step < listed.step:
                    records[key] = listed
        return {
            name: sorted(found[name].values(), key=lambda listed: (natural(listed.tag), natural(listed.process or "")))
            for name in sorted(found, key=natural)
        }

    def run(self, ctx: RequestContext, experiment: str, name: str, kinds: Collection[Kind] = ALL_KINDS) -> RunRecords:
        """The records of one run.

        Args:
            kinds: what to read; records whose kind cannot be told are always looked at.

        Raises:
            tensorboard.errors.NotFoundError: no such run holds records.
        """
        listing = self.listing(ctx, experiment)
        if name not in listing:
            there = ", ".join(repr(run) for run in listing) or "none"
            raise errors.NotFoundError(f"no run {name!r} holds records of memest; runs that do: {there}.")
        return self.read(ctx, experiment, name, listing[name], kinds)

    def preload(self, ctx: RequestContext, experiment: str, listing: Listing, kinds: Collection[Kind]) -> None:
        """Reads all records of `kinds` that a listing names at once: for many runs one question instead of hundreds.

        What cannot be read is left to `read`, which says why.
        """
        wanted = {
            (one.run, one.tag): (one, kind)
            for records in listing.values()
            for one in records
            if (kind := _kind(one)) is not None and kind in kinds and self._key(experiment, one) not in self._cache
        }
        if len(wanted) < 2:
            return
        series = self._provider.read_tensors(
            ctx,
            experiment_id=experiment,
            plugin_name=PLUGIN_NAME,
            downsample=1,
            run_tag_filter=provider.RunTagFilter(
                runs=sorted({run for run, _ in wanted}), tags=sorted({tag for _, tag in wanted})
            ),
        )
        for (run, tag), (one, kind) in wanted.items():
            data = (series or {}).get(run, {}).get(tag, [])
            with contextlib.suppress(ValueError):
                payload = _latest(data)
                self._cache.get(self._key(experiment, one), functools.partial(_decoded, one, kind, payload))

    def read(
        self,
        ctx: RequestContext,
        experiment: str,
        name: str,
        listed: Collection[Listed],
        kinds: Collection[Kind] = ALL_KINDS,
    ) -> RunRecords:
        """The records that a listing names. A record that cannot be read becomes a problem, and the rest is read."""
        run = RunRecords(name, began=_began(listed))
        for one in listed:
            try:
                kind = parse_content(one.content).kind
            except ValueError as error:
                run.problems.append(_problem(one, error))
                continue
            if kind is Kind.CRASH:
                if _went_on_after(one, listed):
                    continue
                run.crashed = True
            if kind in kinds:
                _add(run, self._decoded(ctx, experiment, one, kind), one.process)
        run.profiles.sort(key=lambda profile: (profile.started_at, natural(profile_id(profile))))
        return run

    def _decoded(self, ctx: RequestContext, experiment: str, listed: Listed, kind: Kind) -> Record | str:
        """The record, or the problem with it in words."""

        def make() -> tuple[Record | str, int]:
            return _decoded(listed, kind, self._payload(ctx, experiment, listed))

        try:
            return self._cache.get(self._key(experiment, listed), make)
        except ValueError as error:
            return _problem(listed, error)

    @staticmethod
    def _key(experiment: str, listed: Listed) -> tuple[str, str, str, int, float]:
        return experiment, listed.run, listed.tag, listed.step, listed.wall_time

    def _payload(self, ctx: RequestContext, experiment: str, listed: Listed) -> bytes:
        """The bytes of the latest record of a tag.

        Raises:
            ValueError: there are none.
        """
        series = self._provider.read_tensors(
            ctx,
            experiment_id=experiment,
            plugin_name=PLUGIN_NAME,
            downsample=1,
            run_tag_filter=provider.RunTagFilter(runs=[listed.run], tags=[listed.tag]),
        )
        return _latest((series or {}).get(listed.run, {}).get(listed.tag, []))


def _latest(data: Sequence[provider.TensorDatum]) -> bytes:
    """The bytes of the latest record of a tag.

    Raises:
        ValueError: there are none.
    """
    if not data:
        raise ValueError("TensorBoard lists it but does not give it.")
    latest = max(data, key=lambda datum: datum.step).numpy
    payload = latest.item() if latest.ndim == 0 else None
    if not isinstance(payload, bytes):
        raise ValueError(f"It is a tensor of {latest.dtype} with shape {latest.shape}, not one string.")
    return payload


def _decoded(listed: Listed, kind: Kind, payload: bytes) -> tuple[Record | str, int]:
    """The record, or the problem with it in words; and what it weighs."""
    try:
        return decode(kind, payload), len(payload)
    # Whatever is wrong with the bytes must not keep the other records from being shown.
    except Exception as error:
        return _problem(listed, error), 1


def _began(listed: Collection[Listed]) -> float | None:
    """When a run began; measurements are written again and again while it goes on."""
    estimated = [one.wall_time for one in listed if one.tag in (tag_for(Kind.ESTIMATE), tag_for(Kind.HEADLINE))]
    return max(estimated) if estimated else min((one.wall_time for one in listed), default=None)


def _kind(listed: Listed) -> Kind | None:
    """What a record holds; None where that cannot be told."""
    try:
        return parse_content(listed.content).kind
    except ValueError:
        return None


def run_and_process(run: str) -> tuple[str, str | None]:
    """The run that memest's records in `run` are about, and which of its processes wrote them.

    The run is the directory around their own; `.` is the log directory. The process is None for the first, or the only.
    """
    head, separator, tail = _rsplit(run)
    if tail == SUBDIRECTORY:
        return (head if separator else "."), None
    above, separator, between = _rsplit(head)
    if between == SUBDIRECTORY and re.fullmatch(r"(?:worker|process)_\d+", tail):
        return (above if separator else "."), tail.replace("_", " ")
    return run, None


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key that sorts `run2` before `run10`."""
    parts = re.split(r"(\d+)", text)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def _rsplit(run: str) -> tuple[str, str, str]:
    # TensorBoard names runs after their paths, so on Windows with backslashes.
    match = re.fullmatch(r"(.*)([/\\])([^/\\]*)", run, re.DOTALL)
    return (match[1], match[2], match[3]) if match else ("", "", run)


def _problem(listed: Listed, error: Exception) -> str:
    text = str(error) or repr(error)
    return f"The record {listed.tag!r} could not be read. {text}"


def _went_on_after(crash: Listed, listed: Collection[Listed]) -> bool:
    """Whether steps were recorded after a crash: somebody caught it and trained on, or the run was made again."""
    return any(
        one.tag.startswith(f"{Kind.PEAKS}/") and one.process == crash.process and one.step > crash.step
        for one in listed
    )


def _add(run: RunRecords, record: Record | str, process: str | None) -> None:
    if isinstance(record, Estimate):
        run.estimate = record
    elif isinstance(record, Headline):
        run.headline = record
    elif isinstance(record, MeasuredPeaks):
        run.peaks.append(replace(record, process=process))
    elif isinstance(record, MeasuredBeside):
        run.beside.append(replace(record, peaks=replace(record.peaks, process=process)))
    elif isinstance(record, DeviceTotals):
        run.totals.append(record if process is None else replace(record, device=f"{process}, {record.device}"))
    elif isinstance(record, MeasuredProfile):
        run.profiles.append(record)
    elif isinstance(record, Explanation):
        run.crash = record
    elif isinstance(record, Notes):
        said = record.sentences if process is None else tuple(f"{process}: {one}" for one in record.sentences)
        run.notes = (*run.notes, *(one for one in said if one not in run.notes))
    elif isinstance(record, HostEstimate):
        run.host = record
    elif isinstance(record, Advice):
        run.advice = record
    elif isinstance(record, WhatIf):
        run.what_if = record
    else:
        run.problems.append(record)
