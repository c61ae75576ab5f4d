"""Nested models and blocks as one row each, with what all layers in them hold together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

Plain = dict[str, Any]


def groups(rows: Sequence[Plain]) -> list[Plain]:
    """A row for each path that others lie below: `encoder` for `encoder/block_0/dense` and `encoder/block_1/dense`.

    Args:
        rows: the layers' rows, whose paths are parted by slashes.

    Returns:
        Rows of the same form without what only a layer has, in the order in which their first layer comes; a group
        stands before the groups in it. A path that is a layer too is counted in its group. `layers` is how many layers
        a group has. `measured_bytes` is None where nothing was measured.
    """
    found: dict[str, Plain] = {}
    for row in rows:
        parts = row["path"].split("/")
        for depth in range(1, len(parts)):
            path = "/".join(parts[:depth])
            if path not in found:
                found[path] = _empty(path)
            _count_in(found[path], row)
    for row in rows:
        # The layer that holds others comes among them, and a layer like any other otherwise.
        if row["path"] in found:
            _count_in(found[row["path"]], row)
    return list(found.values())


def _empty(path: str) -> Plain:
    return {
        "path": path,
        "layers": 0,
        "parameters": 0,
        "bytes_per_category": Counter(),
        "bytes_at_peak": 0,
        "measured_bytes": None,
        "difference_bytes": None,
    }


def _count_in(group: Plain, row: Plain) -> None:
    group["layers"] += bool(row["class_name"])
    group["bytes_per_category"].update(row["bytes_per_category"])
    for figure in ("parameters", "bytes_at_peak", "measured_bytes", "difference_bytes"):
        if row.get(figure) is not None:
            group[figure] = (group[figure] or 0) + row[figure]
