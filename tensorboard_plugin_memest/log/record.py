"""A record as bytes and back: JSON, compressed. No TensorFlow."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.log.metadata import Kind, profile_id, tag_for
from tensorboard_plugin_memest.memory.advice import Advice
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.format import FORMAT, check_format, parse_json
from tensorboard_plugin_memest.memory.headline import Headline
from tensorboard_plugin_memest.memory.host import HostEstimate
from tensorboard_plugin_memest.memory.measured import DeviceTotals, MeasuredBeside, MeasuredPeaks, MeasuredProfile
from tensorboard_plugin_memest.memory.what_if import WhatIf


@dataclass(frozen=True)
class Notes:
    """Sentences about what could not be measured, and what to do about it."""

    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"sentences": list(self.sentences)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Notes:
        return cls(tuple(data["sentences"]))


Record = (
    Estimate
    | Headline
    | MeasuredPeaks
    | MeasuredProfile
    | MeasuredBeside
    | DeviceTotals
    | Notes
    | Explanation
    | HostEstimate
    | Advice
    | WhatIf
)

_DictRecord = (
    type[Headline]
    | type[MeasuredPeaks]
    | type[MeasuredBeside]
    | type[MeasuredProfile]
    | type[Notes]
    | type[Explanation]
    | type[HostEstimate]
    | type[DeviceTotals]
    | type[Advice]
    | type[WhatIf]
)

_DICT_RECORDS: dict[Kind, _DictRecord] = {
    Kind.HEADLINE: Headline,
    Kind.PEAKS: MeasuredPeaks,
    Kind.PROFILE: MeasuredProfile,
    Kind.NOTES: Notes,
    Kind.CRASH: Explanation,
    Kind.BESIDE: MeasuredBeside,
    Kind.TOTALS: DeviceTotals,
    Kind.HOST: HostEstimate,
    Kind.ADVICE: Advice,
    Kind.WHAT_IF: WhatIf,
}


def kind_and_tag(record: Record) -> tuple[Kind, str]:
    """The kind of `record` and the tag it is written under.

    Raises:
        TypeError: `record` is none of the things memest records.
    """
    if isinstance(record, Estimate):
        return Kind.ESTIMATE, tag_for(Kind.ESTIMATE)
    if isinstance(record, Headline):
        return Kind.HEADLINE, tag_for(Kind.HEADLINE)
    if isinstance(record, MeasuredPeaks):
        return Kind.PEAKS, tag_for(Kind.PEAKS, record.device)
    if isinstance(record, MeasuredProfile):
        return Kind.PROFILE, tag_for(Kind.PROFILE, profile_id(record))
    if isinstance(record, Notes):
        return Kind.NOTES, tag_for(Kind.NOTES)
    if isinstance(record, HostEstimate):
        return Kind.HOST, tag_for(Kind.HOST)
    if isinstance(record, Advice):
        return Kind.ADVICE, tag_for(Kind.ADVICE)
    if isinstance(record, WhatIf):
        return Kind.WHAT_IF, tag_for(Kind.WHAT_IF)
    if isinstance(record, MeasuredBeside):
        return Kind.BESIDE, tag_for(Kind.BESIDE, f"{record.what}/{record.peaks.device}")
    if isinstance(record, DeviceTotals):
        return Kind.TOTALS, tag_for(Kind.TOTALS, record.device)
    if isinstance(record, Explanation):
        return Kind.CRASH, tag_for(Kind.CRASH)
    raise TypeError(
        "memest records an Estimate, HostEstimate, Advice, WhatIf, MeasuredPeaks, MeasuredProfile, MeasuredBeside, "
        f"Explanation or Notes, not {record!r}."
    )


def encode(record: Record) -> bytes:
    """`record` as compressed JSON.

    The format version is in the bytes as well as in the tag's metadata: TensorBoard keeps the metadata of a tag's
    first record, so where two versions of memest wrote to one directory the metadata alone would lie.
    """
    if isinstance(record, Estimate):
        text = record.to_json()
    else:
        text = json.dumps({"format": FORMAT, **record.to_dict()}, separators=(",", ":"))
    return zlib.compress(text.encode())


def decode(kind: Kind, payload: bytes) -> Record:
    """What `encode` was given.

    Args:
        kind: what the record's metadata says it holds.
        payload: the bytes that `encode` gave.

    Raises:
        NewerFormatError: a newer memest wrote it.
        ValueError: the bytes are not a record of `kind`.
    """
    try:
        text = zlib.decompress(payload)
        if kind is Kind.ESTIMATE:
            return _checked(Estimate.from_json(text))
        data = parse_json(text)
        check_format("record", data.pop("format"))
        return _DICT_RECORDS[kind].from_dict(data)
    except (zlib.error, KeyError, TypeError, AttributeError, IndexError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"Its {len(payload)} bytes are no {kind} that memest wrote ({what}).") from error


def _checked(estimate: Estimate) -> Estimate:
    """`estimate`, if what every reader asks of it can be answered.

    Raises:
        ValueError: it has no step.
        TypeError: a size is no number.
    """
    if not {"first_step", "step", "predict"} & estimate.phases.keys():
        raise ValueError(f"It has neither a first step nor a later one; its phases are {', '.join(estimate.phases)}.")
    # The layers are summed up on first sight, which is where a size that is no number shows.
    sum(layer.bytes_at_peak for layer in estimate.layers)
    return estimate
