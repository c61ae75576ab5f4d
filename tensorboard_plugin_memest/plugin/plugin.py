"""The plugin as TensorBoard sees it: which routes there are and what each parses. `views` says what they answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorboard import errors, plugin_util
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from tensorboard_plugin_memest.log.metadata import PLUGIN_NAME, Kind, profile_id, tag_for
from tensorboard_plugin_memest.memory.alignment import align
from tensorboard_plugin_memest.memory.catalogue import CATALOGUE
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.layer_comparison import highest_step, shown_phase
from tensorboard_plugin_memest.memory.limits import resolve_limit
from tensorboard_plugin_memest.memory.measured import MeasuredProfile
from tensorboard_plugin_memest.plugin import static, views
from tensorboard_plugin_memest.plugin.cache import Cache
from tensorboard_plugin_memest.plugin.curves import Wanted, aligned_view, timeline_view
from tensorboard_plugin_memest.plugin.http import WsgiApp, json_app, required, whole_number
from tensorboard_plugin_memest.plugin.moments import GROUPINGS, moment_view
from tensorboard_plugin_memest.plugin.reader import Listed, Listing, Reader
from tensorboard_plugin_memest.plugin.side_by_side import side_by_side

WHOLE = Wanted()
_HEADLINES_KEPT = 10_000
_HEADLINE_KINDS = frozenset({Kind.HEADLINE, Kind.PEAKS})


class MemestPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The Memory tab's server side. Reads through the data provider alone, so under every loader.

    Args:
        context: TensorBoard's; its `data_provider` is used.
        static_folder: where the built frontend is.
    """

    plugin_name = PLUGIN_NAME

    def __init__(self, context: base_plugin.TBContext, static_folder: Path | None = None) -> None:
        super().__init__(context)
        self._reader = Reader(context.data_provider)
        self._headlines: Cache[views.Plain] = Cache(_HEADLINES_KEPT)
        self._static_folder = static_folder or static.default_folder()

    def get_plugin_apps(self) -> dict[str, WsgiApp]:
        """Route to app."""
        files = wrappers.Request.application(self.static_route)
        return {
            "/runs": json_app(self.runs_route),
            "/gpus": json_app(self.gpus_route),
            "/overview": json_app(self.overview_route),
            "/compare": json_app(self.compare_route),
            "/timeline": json_app(self.timeline_route),
            "/profile": json_app(self.profile_route),
            "/moment": json_app(self.moment_route),
            "/aligned": json_app(self.aligned_route),
            "/peaks": json_app(self.peaks_route),
            "/host": json_app(self.host_route),
            "/what_if": json_app(self.what_if_route),
            f"/{static.ENTRY}": files,
            "/*": files,
        }

    def is_active(self) -> bool:
        """False: TensorBoard itself looks whether there is data of this plugin, and asks this only if there is not."""
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab and its module."""
        return base_plugin.FrontendMetadata(es_module_path=f"/{static.ENTRY}", tab_name="Memory")

    def runs_route(self, request: wrappers.Request) -> Any:
        return self.runs_impl(*_who(request))

    def runs_impl(self, ctx: RequestContext, experiment: str) -> views.Plain:
        """Every run with its headline."""
        listing = self._reader.listing(ctx, experiment)
        self._reader.preload(ctx, experiment, self._unknown(experiment, listing), _HEADLINE_KINDS)
        return {"runs": [self._headline(ctx, experiment, name, listed) for name, listed in listing.items()]}

    def gpus_route(self, _request: wrappers.Request) -> Any:
        return self.gpus_impl()

    def gpus_impl(self) -> views.Plain:
        """What a limit may name: devices and instance types."""
        return {"gpus": [views.gpu_view(gpu) for gpu in CATALOGUE]}

    def overview_route(self, request: wrappers.Request) -> Any:
        return self.overview_impl(*_who(request), required(request, "run"), request.args.get("limit") or None)

    def overview_impl(self, ctx: RequestContext, experiment: str, run: str, limit: str | None = None) -> views.Plain:
        """Everything about one run that is small."""
        return views.overview(self._reader.run(ctx, experiment, run), None if limit is None else _limit(limit))

    def compare_route(self, request: wrappers.Request) -> Any:
        others = request.args.getlist("with")
        return self.compare_impl(*_who(request), required(request, "run"), others, request.args.get("limit") or None)

    def compare_impl(
        self, ctx: RequestContext, experiment: str, run: str, others: list[str], limit: str | None = None
    ) -> views.Plain:
        """One run, and others held against it."""
        return side_by_side([self.overview_impl(ctx, experiment, name, limit) for name in (run, *others)])

    def timeline_route(self, request: wrappers.Request) -> Any:
        return self.timeline_impl(
            *_who(request), required(request, "run"), required(request, "phase"), _wanted(request)
        )

    def timeline_impl(
        self,
        ctx: RequestContext,
        experiment: str,
        run: str,
        phase: str,
        wanted: Wanted = WHOLE,
    ) -> views.Plain:
        """One phase's predicted curve, or what of it is wanted."""
        found = self._phase(ctx, experiment, run, phase)
        return {
            "peak_bytes": found.peak_bytes,
            **timeline_view(found.timeline, wanted, found.owners),
        }

    def profile_route(self, request: wrappers.Request) -> Any:
        return self.profile_impl(*_who(request), required(request, "run"), required(request, "id"), _wanted(request))

    def profile_impl(
        self,
        ctx: RequestContext,
        experiment: str,
        run: str,
        identity: str,
        wanted: Wanted = WHOLE,
    ) -> views.Plain:
        """One profile's measured curve, or what of it is wanted."""
        found = self._profile(ctx, experiment, run, identity)
        estimate = self._reader.run(ctx, experiment, run, {Kind.ESTIMATE}).estimate
        owners = estimate.peak_phase.owners if estimate else {}
        answer = {"peak_bytes": found.peak_bytes, **timeline_view(found.timeline, wanted, owners)}
        answer["timeline"]["spans"] = [span.to_dict() for span in found.steps]
        return answer

    def moment_route(self, request: wrappers.Request) -> Any:
        phase, identity = request.args.get("phase"), request.args.get("id")
        if bool(phase) == bool(identity):
            raise errors.InvalidArgumentError("moment needs either 'phase', of a prediction, or 'id', of a profile.")
        by = request.args.get("by", "layer")
        if by not in GROUPINGS:
            raise errors.InvalidArgumentError(f"by is one of {', '.join(GROUPINGS)}, not {by!r}.")
        at = whole_number(request, "at", -1) if "at" in request.args else None
        return self.moment_impl(*_who(request), required(request, "run"), phase, identity, at, by)

    def moment_impl(
        self,
        ctx: RequestContext,
        experiment: str,
        run: str,
        phase: str | None = None,
        identity: str | None = None,
        at: int | None = None,
        by: str = "layer",
    ) -> views.Plain:
        """Everything alive at one moment: just after the event at position `at` of a timeline, or at its peak."""
        found: Phase | MeasuredProfile
        if phase is not None:
            found = self._phase(ctx, experiment, run, phase)
        else:
            found = self._profile(ctx, experiment, run, identity or "")
        timeline = found.timeline
        position = timeline.peak_position if at is None else at
        if position is None or not 0 <= position < len(timeline):
            raise errors.NotFoundError(f"the timeline has {len(timeline)} events, from 0 on, and none at {position}.")
        alive = found.alive_at(position)
        if alive is None:
            raise errors.NotFoundError(
                "what was alive at this moment was not written down, only at the peak. "
                "Log the run again with this version of memest."
            )
        return {
            "position": position,
            "tick": timeline.ticks[position],
            "unit": timeline.unit,
            "op": timeline.op_at(position),
            "live_bytes": timeline.live_bytes[position],
            **moment_view(alive, by),
        }

    def aligned_route(self, request: wrappers.Request) -> Any:
        return self.aligned_impl(*_who(request), required(request, "run"), required(request, "id"), _wanted(request))

    def aligned_impl(
        self,
        ctx: RequestContext,
        experiment: str,
        run: str,
        identity: str,
        wanted: Wanted = WHOLE,
    ) -> views.Plain:
        """One profile's highest step on the axis of the predicted curve, or what of it is wanted."""
        records = self._reader.run(ctx, experiment, run, {Kind.ESTIMATE})
        profile = self._profile(ctx, experiment, run, identity)
        phase = shown_phase(records.estimate, profile) if records.estimate else None
        if phase is None:
            raise errors.InvalidArgumentError(f"run {run!r} has no estimate of a step to lay a profile beside.")
        step = highest_step(profile)
        try:
            aligned = align(phase.timeline, profile.timeline, step, profile.before_bytes)
        except ValueError as error:
            raise errors.NotFoundError(f"{identity!r}: {error}") from error
        return aligned_view(profile, phase, step, aligned, wanted)

    def peaks_route(self, request: wrappers.Request) -> Any:
        return self.peaks_impl(*_who(request), required(request, "run"))

    def peaks_impl(self, ctx: RequestContext, experiment: str, run: str) -> views.Plain:
        """Measured peaks step by step."""
        return views.peaks_view(self._reader.run(ctx, experiment, run, {Kind.PEAKS, Kind.BESIDE}))

    def host_route(self, request: wrappers.Request) -> Any:
        return self.host_impl(*_who(request), required(request, "run"))

    def host_impl(self, ctx: RequestContext, experiment: str, run: str) -> views.Plain:
        """The data pipeline's memory on the host."""
        return views.host_view(self._reader.run(ctx, experiment, run, {Kind.HOST}).host)

    def what_if_route(self, request: wrappers.Request) -> Any:
        return self.what_if_impl(*_who(request), required(request, "run"))

    def what_if_impl(self, ctx: RequestContext, experiment: str, run: str) -> views.Plain:
        """The training under other choices."""
        return views.what_if_view(self._reader.run(ctx, experiment, run, {Kind.WHAT_IF}).what_if)

    def static_route(self, request: wrappers.Request) -> wrappers.Response:
        name = request.path.partition(f"/plugin/{PLUGIN_NAME}/")[2]
        return static.serve_file(request, self._static_folder, name)

    def _headline(self, ctx: RequestContext, experiment: str, name: str, listed: list[Listed]) -> views.Plain:
        def make() -> tuple[views.Plain, int]:
            records = self._reader.read(ctx, experiment, name, listed, _HEADLINE_KINDS)
            if records.headline is None and any(one.tag == tag_for(Kind.ESTIMATE) for one in listed):
                # Written without one, or it cannot be read: the estimate itself tells, or says what is wrong.
                records = self._reader.read(ctx, experiment, name, listed, {Kind.ESTIMATE, *_HEADLINE_KINDS})
            return views.headline(records), 1

        return self._headlines.get((experiment, name, *listed), make)

    def _unknown(self, experiment: str, listing: Listing) -> Listing:
        """The runs whose headlines are not known yet."""
        return {name: listed for name, listed in listing.items() if (experiment, name, *listed) not in self._headlines}

    def _profile(self, ctx: RequestContext, experiment: str, run: str, identity: str) -> MeasuredProfile:
        records = self._reader.run(ctx, experiment, run, {Kind.PROFILE})
        profiles = {profile_id(profile): profile for profile in records.profiles}
        if identity not in profiles:
            there = ", ".join(profiles) or "none"
            why = " ".join(["", *records.problems])
            raise errors.NotFoundError(f"run {run!r} has no profile {identity!r}; it has: {there}.{why}")
        return profiles[identity]

    def _phase(self, ctx: RequestContext, experiment: str, run: str, phase: str) -> Phase:
        records = self._reader.run(ctx, experiment, run, {Kind.ESTIMATE})
        if records.estimate is None:
            why = " ".join(records.problems) or "It has only measurements."
            raise errors.NotFoundError(f"run {run!r} has no estimate. {why}")
        phases = records.estimate.phases
        if phase not in phases:
            raise errors.NotFoundError(f"run {run!r} has no phase {phase!r}; it has: {', '.join(phases)}.")
        return phases[phase]


def _who(request: wrappers.Request) -> tuple[RequestContext, str]:
    return plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)


def _limit(text: str) -> int | str:
    """What was typed, if it is a limit: bytes, or text that `Estimate.fits` understands."""
    limit = int(text) if text.strip().isdecimal() else text
    try:
        resolve_limit(limit)
    except ValueError as error:
        raise errors.InvalidArgumentError(f"limit: {error}") from error
    return limit


def _wanted(request: wrappers.Request) -> Wanted:
    """What of a curve is asked for."""
    points = whole_number(request, "points", WHOLE.points)
    if points < 4:
        raise errors.InvalidArgumentError(f"points is at least 4, not {points}.")
    first, last = (whole_number(request, name, 0) if name in request.args else None for name in ("from", "to"))
    if first is not None and last is not None and first > last:
        raise errors.InvalidArgumentError(f"from is at most to, but {first} is more than {last}.")
    return Wanted(points, first, last)
