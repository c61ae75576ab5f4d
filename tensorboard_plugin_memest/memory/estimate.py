"""The prediction for one model: phases, layers and what is alive at the peak."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.allocations import Alive, Allocations, alike
from tensorboard_plugin_memest.memory.batch_search import largest_that_fits
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.format import AsJson
from tensorboard_plugin_memest.memory.item import Item, by_category
from tensorboard_plugin_memest.memory.limits import CAPABILITY_UNKNOWN, Limit, resolve_limit, risks
from tensorboard_plugin_memest.memory.text import as_text
from tensorboard_plugin_memest.memory.timeline import Timeline
from tensorboard_plugin_memest.memory.verdict import Verdict, judge
from tensorboard_plugin_memest.memory.what_if import WhatIf
from tensorboard_plugin_memest.memory.whose import Whose, owners_from_list, owners_to_list

# The phases of a run, in the order in which it passes them.
PHASES = ("build", "first_step", "step", "evaluate", "predict", "checkpoint")

# How long other choices are tried where nothing else is said.
WHAT_IF_SECONDS = 60.0


@dataclass(frozen=True)
class Phase:
    """What one phase of a run needs.

    Attributes:
        name: one of PHASES.
        peak_bytes: predicted peak of the device's allocator, rounding and unsplit chunks included.
        requested_peak_bytes: the peak of what the ops ask for, without the pool's rounding and slack.
        peak_without_scratch_bytes: the peak with no kernel workspace counted.
        peak_range: lowest and highest peak over the orders that can happen, in bytes.
        peak_op: the op at which the peak is reached.
        live_at_peak: everything alive then, largest first; the bytes add up to `peak_bytes`.
        timeline: live bytes op by op.
        pool_bytes: bytes that the allocator's pool would have reserved by the end of the phase, gaps between tensors
            included: the regions of a pool that grows, or as much of a preallocated one as tensors reached into. None
            when that was not estimated.
        owners: whose the tensors are that each op allocates, by the op's name; empty where that was not kept.
        heirs: whose they are at the peak, for ops whose memory others have taken over by then.
        host_peak_bytes: what the phase takes of the host's memory besides, where that is known: saving weights does.
        allocations: the buffers of the timeline, so that it can be told what is alive at any moment of it; None where
            that was not kept, as before memest did.
    """

    name: str
    peak_bytes: int
    requested_peak_bytes: int
    peak_without_scratch_bytes: int
    peak_range: tuple[int, int]
    peak_op: str
    live_at_peak: tuple[Item, ...]
    timeline: Timeline
    pool_bytes: int | None = None
    owners: Mapping[str, Whose] = field(default_factory=dict)
    heirs: Mapping[str, Whose] = field(default_factory=dict)
    host_peak_bytes: int = 0
    allocations: Allocations | None = None

    @property
    def categories(self) -> dict[Category, int]:
        """Bytes at the peak per category; they add up to `peak_bytes`."""
        return by_category(self.live_at_peak)

    def alive_at(self, position: int) -> list[Alive] | None:
        """Everything alive just after the event at `position` of the timeline, largest first; None if not known.

        The peak is known of every estimate.
        """
        if self.allocations is not None:
            return self.allocations.alive_at(position)
        return alike(self.live_at_peak) if position == self.timeline.peak_position else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "peak_bytes": self.peak_bytes,
            "requested_peak_bytes": self.requested_peak_bytes,
            "peak_without_scratch_bytes": self.peak_without_scratch_bytes,
            "peak_range": list(self.peak_range),
            "peak_op": self.peak_op,
            "live_at_peak": [item.to_dict() for item in self.live_at_peak],
            "timeline": self.timeline.to_dict(),
            "pool_bytes": self.pool_bytes,
            "host_peak_bytes": self.host_peak_bytes,
            "owners": owners_to_list(self.owners),
            "heirs": owners_to_list(self.heirs),
            "allocations": None if self.allocations is None else self.allocations.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Phase:
        low, high = data["peak_range"]
        return cls(
            name=data["name"],
            peak_bytes=data["peak_bytes"],
            requested_peak_bytes=data["requested_peak_bytes"],
            peak_without_scratch_bytes=data["peak_without_scratch_bytes"],
            peak_range=(low, high),
            peak_op=data["peak_op"],
            live_at_peak=tuple(Item.from_dict(item) for item in data["live_at_peak"]),
            timeline=Timeline.from_dict(data["timeline"]),
            pool_bytes=data.get("pool_bytes"),
            host_peak_bytes=data.get("host_peak_bytes", 0),
            owners=owners_from_list(data.get("owners", ())),
            heirs=owners_from_list(data.get("heirs", ())),
            allocations=Allocations.from_dict(data["allocations"]) if data.get("allocations") else None,
        )


@dataclass(frozen=True)
class LayerInfo:
    """What a layer is, apart from its memory.

    Attributes:
        path: `"sequential/dense"`.
        class_name: `"Dense"`.
        output_shape: dimensions of its first output at the estimate's batch size; None when unknown.
        parameters: number of its weights' elements, those of layers inside it not counted.
    """

    path: str
    class_name: str
    output_shape: tuple[int | None, ...] | None
    parameters: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "class_name": self.class_name,
            "output_shape": None if self.output_shape is None else list(self.output_shape),
            "parameters": self.parameters,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LayerInfo:
        shape = data["output_shape"]
        return cls(
            path=data["path"],
            class_name=data["class_name"],
            output_shape=None if shape is None else tuple(shape),
            parameters=data["parameters"],
        )


@dataclass(frozen=True)
class Layer:
    """A layer and the bytes it holds at the peak; also a part of the step that is no layer, such as `(optimizer)`.

    Attributes:
        info: path, class, output shape, parameters; for a part that is no layer the class is empty.
        bytes_per_category: bytes at the estimate's peak, empty categories left out.
        bytes_at_peak: their sum.
    """

    info: LayerInfo
    bytes_per_category: Mapping[Category, int]

    @property
    def path(self) -> str:
        return self.info.path

    @property
    def class_name(self) -> str:
        return self.info.class_name

    @property
    def output_shape(self) -> tuple[int | None, ...] | None:
        return self.info.output_shape

    @property
    def parameters(self) -> int:
        return self.info.parameters

    @property
    def bytes_at_peak(self) -> int:
        return sum(self.bytes_per_category.values())


@dataclass(frozen=True)
class Subject:
    """What was estimated and for what.

    Attributes:
        model_name: the Keras model's name.
        model_class: its class's name.
        parameters: elements of all weights of the model.
        trainable_parameters: those that are trained.
        optimizer: class name of the optimizer; None without one.
        batch_size: examples a step.
        mode: `"graph"`, `"xla"` or `"eager"`.
        device: `"CPU"` or `"GPU"`.
        pool: how the device's allocator gets memory, `"growth"` or `"preallocated"`.
        versions: package name to version.
        strategy: class name of the `tf.distribute` strategy; None without one.
        replicas: how many replicas share a batch; everything but the batch size is of one of them.
    """

    model_name: str
    model_class: str
    parameters: int
    trainable_parameters: int
    optimizer: str | None
    batch_size: int
    mode: str
    device: str
    pool: str
    versions: Mapping[str, str]
    strategy: str | None = None
    replicas: int = 1

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "versions": dict(self.versions)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Subject:
        return cls(**data)


class Origin(Protocol):
    """What an estimate was made of."""

    def at_batch_size(self, batch_size: int) -> Estimate:
        """The same training for another batch size."""

    def advice(self, estimate: Estimate, limit_bytes: int, seconds: float | None) -> Advice:
        """What to change so that the training, whose estimate is given, fits into a limit."""

    def what_if(self, estimate: Estimate, seconds: float | None) -> WhatIf:
        """The training, whose estimate is given, under other choices."""


@dataclass(frozen=True)
class Estimate(AsJson):
    """The predicted memory of one training run, phase by phase. All numbers are bytes.

    Attributes:
        subject: the model, batch size, mode and device it is for.
        resident_bytes: variables that stay between steps: weights, optimizer slots, metrics; rounding included.
        phases: phase name to Phase, in the order in which a run passes them.
        layer_infos: every layer of the model, in the model's order.
        assumptions: everything that was assumed, one sentence each.
        limit_bytes: memory of the device this process sees or of the device named by the caller; None when unknown.
        origin: what it was made of, for estimating the same training for other batch sizes; None where that is not at
            hand, as for an estimate that was read from JSON. It is no part of the record.
    """

    called = "estimate"

    subject: Subject
    resident_bytes: int
    phases: Mapping[str, Phase]
    layer_infos: tuple[LayerInfo, ...]
    assumptions: tuple[str, ...] = ()
    limit_bytes: int | None = None
    origin: Origin | None = field(default=None, repr=False, compare=False)
    _layers: list[Layer] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def peak_phase(self) -> Phase:
        """The training phase with the highest peak; that of prediction where nothing is trained."""
        steps = [phase for name, phase in self.phases.items() if name in ("step", "first_step")]
        steps = steps or [phase for name, phase in self.phases.items() if name != "build"]
        # A steady step goes first: where both peak alike, people want to see the one that repeats.
        return max(reversed(steps), key=lambda phase: phase.peak_bytes)

    @property
    def peak_bytes(self) -> int:
        """The highest peak of first_step and step; of a model that only predicts, of predict."""
        return self.peak_phase.peak_bytes

    @property
    def items(self) -> tuple[Item, ...]:
        """Everything alive at the peak, largest first."""
        return self.peak_phase.live_at_peak

    @property
    def layers(self) -> list[Layer]:
        """Every layer, in the model's order, then the parts of the step that are no layer; all bytes at the peak."""
        if not self._layers:
            self._layers.extend(_layers_at_peak(self.layer_infos, self.items))
        return self._layers

    def fits(self, limit: int | str | None = None) -> Verdict:
        """Whether every phase fits into `limit`.

        Args:
            limit: bytes; text such as `"9.29GiB"` or `"24GB"`; the name of a GPU or of a cloud instance type, such as
                `"RTX 3080"`, `"A100 80GB"` or `"p3.2xlarge"`, for what TensorFlow would use of an idle one; None for
                the limit of the device that the estimate is for, where that is known.

        Returns:
            A Verdict, usable as a condition, with a margin for each phase and the risks that the peaks do not tell.

        Raises:
            ValueError: `limit` is no memory size and no device that is known, or None where no limit is known.
        """
        resolved = self._resolved(limit, "fits")
        verdict = judge(
            {name: (phase.peak_bytes, phase.peak_range) for name, phase in self.phases.items()}, resolved.bytes
        )
        pools = [phase.pool_bytes for phase in self.phases.values() if phase.pool_bytes is not None]
        return replace(
            verdict,
            limit_name=resolved.device.name if resolved.device else None,
            risks=risks(
                resolved,
                max(phase.peak_range[1] for phase in self.phases.values()),
                max(pools, default=None),
                on_gpu=self.subject.device == "GPU",
                grows=self.subject.pool == "growth",
                for_any=CAPABILITY_UNKNOWN in self.assumptions,
            ),
        )

    def _resolved(self, limit: int | str | None, asked: str) -> Limit:
        if limit is not None:
            return resolve_limit(limit)
        if self.limit_bytes is None:
            raise UsageError(
                f"{asked}(None) takes the limit of the device that the estimate is for, and none is known here "
                f"({self.subject.device}). Pass bytes, a size such as '9.29GiB', or a GPU's name such as 'RTX 3080'."
            )
        return Limit(self.limit_bytes)

    def at_batch_size(self, batch_size: int) -> Estimate:
        """The estimate for another batch size, the same as a new estimate for that size would be.

        The model's Python code does not run again: what depends on the batch size was found out when the estimate was
        made. Where that cannot be exact the step is traced again, silently: for a batch of one, which TensorFlow
        broadcasts where it does not broadcast others; where the step is large and was not traced for a second size yet;
        and where shapes depend on the batch size in an unusual way. What cannot be seen is Python code that decides by
        the batch size (`if batch_size > 64`).

        Args:
            batch_size: examples a step.

        Raises:
            ValueError: it is no positive integer, the model takes one batch size only, or the estimate does not know
                what it was made of (it was read from JSON).
        """
        return self._known_origin("at_batch_size").at_batch_size(batch_size)

    def max_batch_size(self, limit: int | str | None = None) -> int:
        """The largest batch size whose every phase surely fits into `limit`, in every order that can happen.

        It is looked for with a few estimates, in steps that follow from how the peak grows with the batch.

        Args:
            limit: as for `fits`.

        Returns:
            Examples a step; 0 if not even one fits, and at most LARGEST_BATCH_SIZE.

        Raises:
            ValueError: as for `fits` and `at_batch_size`.
        """
        limit_bytes = self._resolved(limit, "max_batch_size").bytes
        origin = self._known_origin("max_batch_size")
        return largest_that_fits(
            lambda size: self if size == self.subject.batch_size else origin.at_batch_size(size),
            self.subject.batch_size,
            limit_bytes,
        )

    def advice(self, limit: int | str | None = None, seconds: float | None = None) -> Advice:
        """What to change so that the training fits into `limit`, or needs less.

        Every change is made to the model, without memory, and estimated: an advice takes as long as some ten to twenty
        estimates. What does not help is listed too, with the reason.

        Args:
            limit: as for `fits`.
            seconds: how long it may take, all in all; None to try all changes. What is likely to save most goes first,
                and notes name what was left out.

        Returns:
            An Advice: changes with their peaks, costs and code, and the fewest that make it fit. `print` it.

        Raises:
            ValueError: as for `fits`, or the estimate does not know what it was made of (it was read from JSON).
        """
        _check_seconds(seconds)
        limit_bytes = self._resolved(limit, "advice").bytes
        return self._known_origin("advice").advice(self, limit_bytes, seconds)

    def what_if(self, seconds: float | None = WHAT_IF_SECONDS) -> WhatIf:
        """The same training with other batch sizes, optimizers, precisions and modes, and combinations of them.

        Each is estimated, those with fewest changes first.

        Args:
            seconds: time after which no further combination is begun; None for all of them, which may take as long as
                a hundred estimates.

        Returns:
            A WhatIf; call it: `what_if(optimizer="SGD", batch_size=64).peak_bytes`.

        Raises:
            ValueError: the estimate does not know what it was made of (it was read from JSON), or nothing is trained.
        """
        _check_seconds(seconds)
        return self._known_origin("what_if").what_if(self, seconds)

    def _known_origin(self, asked: str) -> Origin:
        if self.origin is None:
            raise UsageError(
                f"{asked}() needs the model, which this estimate does not have: it was read from JSON or from a log "
                "directory, or made by something that cannot be asked again. Make a new one with memest.estimate(...) "
                "and ask that."
            )
        return self.origin

    def __getstate__(self) -> dict[str, Any]:
        # Models and functions cannot be pickled in general; the numbers can.
        return {**self.__dict__, "origin": None}

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject.to_dict(),
            "resident_bytes": self.resident_bytes,
            "phases": [phase.to_dict() for phase in self.phases.values()],
            "layer_infos": [info.to_dict() for info in self.layer_infos],
            "assumptions": list(self.assumptions),
            "limit_bytes": self.limit_bytes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Estimate:
        phases = [Phase.from_dict(phase) for phase in data["phases"]]
        return cls(
            subject=Subject.from_dict(data["subject"]),
            resident_bytes=data["resident_bytes"],
            phases={phase.name: phase for phase in phases},
            layer_infos=tuple(LayerInfo.from_dict(info) for info in data["layer_infos"]),
            assumptions=tuple(data["assumptions"]),
            limit_bytes=data["limit_bytes"],
        )


def _check_seconds(seconds: Any) -> None:
    if seconds is None or (isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds >= 0):
        return
    raise UsageError(f"seconds= takes a number that is not negative, or None for as long as it takes, not {seconds!r}.")


def _layers_at_peak(infos: tuple[LayerInfo, ...], items: tuple[Item, ...]) -> list[Layer]:
    held: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        held[item.layer].append(item)
    layers = [Layer(info, by_category(held.pop(info.path, []))) for info in infos]
    layers += [Layer(LayerInfo(path, "", None, 0), by_category(rest)) for path, rest in sorted(held.items())]
    return layers
