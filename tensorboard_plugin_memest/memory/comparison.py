"""Predicted peaks against measured ones, the data pipeline's memory taken out of those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.headline import Headline
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks, Window


@dataclass(frozen=True)
class Comparison:
    """What was predicted and what was measured. All numbers are bytes.

    Attributes:
        predicted_peak_bytes: the estimate's peak, as often as replicas share the allocator; None without an estimate.
        measured_peak_bytes: the highest peak that the allocator counted in any step, everything included; None where
            nothing was measured.
        phases: `"first_step"` and `"step"`, as far as they were measured, to the highest peak of the step itself;
            without an estimate the data pipeline is in it.
    """

    predicted_peak_bytes: int | None
    measured_peak_bytes: int | None
    phases: Mapping[str, int]

    @property
    def step_peak_bytes(self) -> int | None:
        """The highest peak of any step itself, which is what a prediction is of; None where nothing was measured."""
        return max(self.phases.values(), default=None)

    @property
    def pipeline_bytes(self) -> int | None:
        """How much of the measured peak was the data pipeline's, at least 0; None where one of the two is missing."""
        if self.predicted_peak_bytes is None or self.measured_peak_bytes is None or self.step_peak_bytes is None:
            return None
        return self.measured_peak_bytes - self.step_peak_bytes

    @property
    def difference(self) -> float | None:
        """(predicted - measured) / measured of the step itself, a fraction; None where one of the two is missing."""
        if self.predicted_peak_bytes is None or not self.step_peak_bytes:
            return None
        return (self.predicted_peak_bytes - self.step_peak_bytes) / self.step_peak_bytes


def compare(estimate: Estimate | Headline | None, peaks: MeasuredPeaks) -> Comparison:
    """Holds `estimate` against the peaks of one device.

    On a CPU the tensors of the data pipeline (cached elements, shuffle buffer, prefetched batches, arrays given to
    `fit`) lie in the allocator that the step uses, so every peak contains them, and the estimate of a step does not.
    What is in use between steps beyond what the estimate says is taken for theirs, and of a step's peak counts only
    how far it rises above what is in use around it (see `Window.rise_bytes`).

    So three things cannot be told apart. A variable that the estimate does not know is taken for the pipeline's. What
    the pipeline takes and gives back within one step is taken for the step's. And where the allocator hands out whole
    chunks for less, what it so wastes changes from step to step and from estimate to run, in either direction; what is
    taken for the pipeline's is only as exact as that.

    On a GPU the pipeline's tensors are in the host's memory, and peaks are compared as they are.

    An estimate of several replicas is of one of them. Those that share an allocator, as logical CPUs do, are held
    against it together.

    Args:
        estimate: what was predicted, for the kind of device that was measured; None to tell only what was measured.
        peaks: what was measured.
    """
    headline = Headline.of(estimate) if isinstance(estimate, Estimate) else estimate
    on_cpu = peaks.device.partition(":")[0] == "CPU"
    times = min(headline.subject.replicas, peaks.shared_by) if headline else 1
    phases = {
        name: max(
            _step_peak(headline, window, times) if on_cpu and headline else window.peak_bytes for window in windows
        )
        for name, windows in peaks.phases.items()
    }
    return Comparison(times * headline.peak_bytes if headline else None, peaks.peak_bytes, phases)


def compare_devices(estimate: Estimate | Headline | None, devices: Iterable[MeasuredPeaks]) -> Comparison:
    """Holds `estimate` against the device of its kind, or without an estimate of any, whose steps peaked highest."""
    kind = estimate.subject.device if estimate else None
    found = [compare(estimate, peaks) for peaks in devices if kind in (None, peaks.device.partition(":")[0])]
    nothing = Comparison(estimate.peak_bytes if estimate else None, None, {})
    return max(found, key=lambda comparison: comparison.step_peak_bytes or 0, default=nothing)


def _step_peak(headline: Headline, window: Window, times: int) -> int:
    """How high the highest step of `window` peaked by itself.

    Of a window of many steps this can be too high, as the step that rose most need not have begun with least; it is
    never too low and never above the measured peak.
    """
    between = headline.after_first_step_bytes if window.first_step == 0 else headline.before_step_bytes
    return min(window.peak_bytes, times * between + window.rise_bytes)
