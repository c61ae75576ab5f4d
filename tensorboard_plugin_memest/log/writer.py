"""Writes memest's records of one run into its log directory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType

from tensorboard.compat.proto import summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2

from tensorboard_plugin_memest.log.event_file import share
from tensorboard_plugin_memest.log.logdir import resolve_logdir
from tensorboard_plugin_memest.log.metadata import SUBDIRECTORY, build_metadata
from tensorboard_plugin_memest.log.record import Notes, Record, encode, kind_and_tag
from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.headline import Headline
from tensorboard_plugin_memest.memory.host import HostEstimate
from tensorboard_plugin_memest.memory.measured import DeviceTotals, MeasuredBeside, MeasuredPeaks, MeasuredProfile
from tensorboard_plugin_memest.memory.what_if import WhatIf


class RunWriter:
    """Writes what memest knows about one run, one record per thing; a later record replaces an earlier one.

    Records go to the subdirectory `memest` of the run's directory; of several processes that write there at once, each
    but one uses a directory of its own in that (see `process.py`). Every record is on disk when its method returns.
    Nothing is created before the first. Safe to use from several threads and beside other writers of the same run;
    close it, or use it as a context manager.

    Args:
        logdir: the run's directory, the one the training's own summaries go to; a path or a remote address such as
            `gs://bucket/run`. None: that of the current default `tf.summary` writer.

    Raises:
        ValueError: no directory is given and no default writer tells one.
        TypeError: `logdir` is no path.
    """

    def __init__(self, logdir: str | os.PathLike[str] | None = None) -> None:
        self.logdir = resolve_logdir(logdir)
        self._file = share(os.path.join(self.logdir, SUBDIRECTORY))
        self._closed = False

    def write_estimate(self, estimate: Estimate) -> None:
        """Records the prediction, and apart from it the little that a list of runs shows."""
        self._write(estimate)
        self._write(Headline.of(estimate))

    def write_host(self, estimate: HostEstimate) -> None:
        """Records the prediction for the data pipeline."""
        self._write(estimate)

    def write_advice(self, advice: Advice) -> None:
        """Records what to change so that the training needs less."""
        self._write(advice)

    def write_what_if(self, what_if: WhatIf) -> None:
        """Records what the training needs under other choices."""
        self._write(what_if)

    def write_peaks(self, peaks: MeasuredPeaks) -> None:
        """Records the measured peaks of one device, all of the run so far."""
        self._write(peaks)

    def write_beside(self, beside: MeasuredBeside) -> None:
        """Records what was measured beside the training steps, all of the run so far."""
        self._write(beside)

    def write_totals(self, totals: DeviceTotals) -> None:
        """Records what the driver has seen in use on one GPU, all of the run so far."""
        self._write(totals)

    def write_profile(self, profile: MeasuredProfile) -> None:
        """Records the memory timeline of one allocator in one profile."""
        self._write(profile)

    def write_crash(self, explanation: Explanation) -> None:
        """Records why the run ran out of memory."""
        self._write(explanation)

    def write_notes(self, sentences: Iterable[str]) -> None:
        """Records what could not be measured and what to do about it, one sentence each; all of them every time.

        Raises:
            TypeError: `sentences` is one text instead of several.
        """
        if isinstance(sentences, str):
            raise TypeError(f"write_notes takes a list of sentences, not the single text {sentences!r}.")
        self._write(Notes(tuple(sentences)))

    def close(self) -> None:
        """Ends writing; closing again does nothing."""
        if not self._closed:
            self._closed = True
            self._file.release()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, record: Record) -> None:
        if self._closed:
            raise ValueError(f"This RunWriter of {self.logdir} is closed; make another one.")
        kind, tag = kind_and_tag(record)
        self._file.write(
            summary_pb2.Summary.Value(
                tag=tag,
                metadata=build_metadata(kind),
                tensor=tensor_pb2.TensorProto(
                    dtype=types_pb2.DT_STRING,
                    tensor_shape=tensor_shape_pb2.TensorShapeProto(),
                    string_val=[encode(record)],
                ),
            )
        )
