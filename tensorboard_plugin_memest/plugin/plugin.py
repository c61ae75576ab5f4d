"""The plugin as TensorBoard sees it: which routes there are and what each parses. `views` says what they answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorboard import errors, plugin_util
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from tensorboard_plugin_memest.log.metadata import PLUGIN_NAME, Kind, profile_id
from tensorboard_plugin_memest.memory.catalogue import CATALOGUE
from tensorboard_plugin_memest.memory.estimate import Phase
from tensorboard_plugin_memest.memory.limits import resolve_limit
from tensorboard_plugin_memest.plugin import static, views
from tensorboard_plugin_memest.plugin.cache import Cache
from tensorboard_plugin_memest.plugin.http import WsgiApp, json_app, required, whole_number
from tensorboard_plugin_memest.plugin.reader import Listed, Reader

DEFAULT_POINTS = 2000
_HEADLINES_KEPT = 10_000
_HEADLINE_KINDS = frozenset({Kind.ESTIMATE, Kind.PEAKS, Kind.NOTES})


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
            "/items": json_app(self.items_route),
            "/timeline": json_app(self.timeline_route),
            "/profile": json_app(self.profile_route),
            "/peaks": json_app(self.peaks_route),
            "/host": json_app(self.host_route),
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
        limit_bytes = None if limit is None else _limit(limit)
        return views.overview(self._reader.run(ctx, experiment, run), limit_bytes)

    def items_route(self, request: wrappers.Request) -> Any:
        return self.items_impl(*_who(request), required(request, "run"), required(request, "phase"))

    def items_impl(self, ctx: RequestContext, experiment: str, run: str, phase: str) -> views.Plain:
        """Everything alive at one phase's predicted peak."""
        return views.items_view(self._phase(ctx, experiment, run, phase))

    def timeline_route(self, request: wrappers.Request) -> Any:
        return self.timeline_impl(
            *_who(request), required(request, "run"), required(request, "phase"), _points(request)
        )

    def timeline_impl(
        self, ctx: RequestContext, experiment: str, run: str, phase: str, points: int = DEFAULT_POINTS
    ) -> views.Plain:
        """One phase's predicted curve."""
        found = self._phase(ctx, experiment, run, phase)
        return views.timeline_view(found.peak_bytes, found.timeline, points)

    def profile_route(self, request: wrappers.Request) -> Any:
        return self.profile_impl(*_who(request), required(request, "run"), required(request, "id"), _points(request))

    def profile_impl(
        self, ctx: RequestContext, experiment: str, run: str, identity: str, points: int = DEFAULT_POINTS
    ) -> views.Plain:
        """One profile's measured curve."""
        records = self._reader.run(ctx, experiment, run, {Kind.PROFILE})
        profiles = {profile_id(profile): profile for profile in records.profiles}
        if identity not in profiles:
            there = ", ".join(profiles) or "none"
            why = " ".join(["", *records.problems])
            raise errors.NotFoundError(f"run {run!r} has no profile {identity!r}; it has: {there}.{why}")
        found = profiles[identity]
        answer = views.timeline_view(found.peak_bytes, found.timeline, points)
        answer["timeline"]["spans"] = [span.to_dict() for span in found.steps]
        return answer

    def peaks_route(self, request: wrappers.Request) -> Any:
        return self.peaks_impl(*_who(request), required(request, "run"))

    def peaks_impl(self, ctx: RequestContext, experiment: str, run: str) -> views.Plain:
        """Measured peaks step by step."""
        return views.peaks_view(self._reader.run(ctx, experiment, run, {Kind.PEAKS}))

    def host_route(self, request: wrappers.Request) -> Any:
        return self.host_impl(*_who(request), required(request, "run"))

    def host_impl(self, ctx: RequestContext, experiment: str, run: str) -> views.Plain:
        """The data pipeline's memory on the host."""
        return views.host_view(self._reader.run(ctx, experiment, run, {Kind.HOST}).host)

    def static_route(self, request: wrappers.Request) -> wrappers.Response:
        name = request.path.partition(f"/plugin/{PLUGIN_NAME}/")[2]
        return static.serve_file(request, self._static_folder, name)

    def _headline(self, ctx: RequestContext, experiment: str, name: str, listed: list[Listed]) -> views.Plain:
        def make() -> tuple[views.Plain, int]:
            return views.headline(self._reader.read(ctx, experiment, name, listed, _HEADLINE_KINDS)), 1

        return self._headlines.get((experiment, name, *listed), make)

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


def _limit(text: str) -> int:
    try:
        return resolve_limit(int(text) if text.strip().isdecimal() else text).bytes
    except ValueError as error:
        raise errors.InvalidArgumentError(f"limit: {error}") from error


def _points(request: wrappers.Request) -> int:
    points = whole_number(request, "points", DEFAULT_POINTS)
    if points < 4:
        raise errors.InvalidArgumentError(f"points is at least 4, not {points}.")
    return points
