"""How many records files hold and how long they are, from their sizes and the first bytes of one."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass

# A record of a TFRecord file has its length and two checksums beside its data: 8 + 4 + 4 bytes.
_FRAME = 16
_LINES = 64 * 1024


@dataclass(frozen=True)
class Records:
    """Attributes: how many there are, the bytes of each, and what was assumed to know that."""

    count: int
    bytes_each: int
    assumption: str | None = None


def records(kind: str, paths: Sequence[str], record_bytes: int | None, compression: str) -> Records | None:
    """The records in `paths`; None where that cannot be told without reading them.

    Args:
        kind: `"TFRecord"`, `"TextLine"` or `"FixedLengthRecord"`.
        paths: files on this machine.
        record_bytes: of records of a fixed length.
        compression: `""`, `"ZLIB"` or `"GZIP"`.
    """
    total = sum(map(size_of, paths))
    if not paths or not total or compression:
        return None
    if kind == "FixedLengthRecord" and record_bytes:
        return Records(total // record_bytes, record_bytes)
    first = next(path for path in paths if size_of(path))
    with open(first, "rb") as file:
        start = file.read(8 if kind == "TFRecord" else _LINES)
    if kind == "TFRecord" and len(start) == 8:
        length = struct.unpack("<Q", start)[0]
        if not 0 <= length <= total:
            return None
        return Records(
            max(1, round(total / (length + _FRAME))),
            length,
            f"Every record is taken for as long as the first of {first}: {length} bytes.",
        )
    if kind == "TextLine":
        lines = max(start.count(b"\n"), 1)
        each = len(start) / lines
        return Records(
            max(1, round(total / each)), round(each) - 1, f"Lines are taken for as long as the first of {first}."
        )
    return None


def size_of(path: str) -> int:
    """Bytes of a file on this machine; 0 for one that is not there."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
