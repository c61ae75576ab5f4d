"""The names under which records are written and found again. Shared by the writer and the plugin; no TensorFlow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

from tensorboard.compat.proto import summary_pb2

from tensorboard_plugin_memest.memory.format import FORMAT, check_format
from tensorboard_plugin_memest.memory.measured import MeasuredProfile

PLUGIN_NAME = "memest"

# Records go to a directory of their own inside the run's: TensorBoard's slow loader stops reading the older of two
# event files in one directory, and the older one would be the user's.
SUBDIRECTORY = "memest"


class Kind(str, Enum):
    """What a record holds."""

    ESTIMATE = "estimate"
    HEADLINE = "headline"
    PEAKS = "peaks"
    PROFILE = "profile"
    NOTES = "notes"
    CRASH = "crash"
    BESIDE = "beside"
    TOTALS = "totals"
    HOST = "host"
    ADVICE = "advice"
    WHAT_IF = "what_if"

    def __str__(self) -> str:
        return self.value


def profile_id(profile: MeasuredProfile) -> str:
    """What tells a profile from the others of its run: `"cpu_bfc@host/2026_01_01_00_00_00"`."""
    return f"{profile.allocator}@{profile.host}/{profile.started_at}"


def tag_for(kind: Kind, part: str = "") -> str:
    """The tag of a record: `"estimate"`, `"notes"`, `"peaks/CPU:0"`, `"profile/cpu_bfc@host/2026_01_01_00_00_00"`.

    Args:
        kind: what the record holds.
        part: which one, where a run has several: the device of peaks, the id of a profile.
    """
    return f"{kind}/{part}" if part else str(kind)


@dataclass(frozen=True)
class Content:
    """What a tag's metadata says about its records."""

    format: int
    kind: Kind


def build_metadata(kind: Kind) -> summary_pb2.SummaryMetadata:
    """The metadata of a record of `kind`."""
    return summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(
            plugin_name=PLUGIN_NAME,
            content=json.dumps({"format": FORMAT, "kind": str(kind)}).encode(),
        ),
        # Summaries of an unset data class are invisible to plugins.
        data_class=summary_pb2.DATA_CLASS_TENSOR,
    )


def parse_content(content: bytes) -> Content:
    """What `build_metadata` put into `plugin_data.content`.

    Raises:
        NewerFormatError: a newer memest wrote the record.
        ValueError: it is not the content of a record of memest.
    """
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    found = data.get("format") if isinstance(data, dict) else None
    if not isinstance(found, int) or "kind" not in data:
        raise ValueError(f"Its metadata is {content!r}, which is not what memest writes.")
    # The version first: a newer memest may know kinds that this one does not.
    check_format("record", found)
    try:
        return Content(found, Kind(data["kind"]))
    except ValueError:
        raise ValueError(f"Its kind is {data['kind']!r}; memest knows {', '.join(Kind)}.") from None
