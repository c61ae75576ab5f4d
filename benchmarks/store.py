"""Measurements kept in a JSON file, one record for each training and setting."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from benchmarks.configuration import Trained
from benchmarks.fingerprint import fingerprint

Record = dict[str, Any]


class Store:
    """What was measured so far; every change is on disk at once, so measuring can be ended and taken up again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: dict[str, Record] = {}
        if path.exists():
            self._records = json.loads(path.read_text())

    def record(self, trained: Trained, setting: str) -> Record:
        """The record of a training, empty where nothing that still counts was measured."""
        found = self._records.get(_key(trained, setting))
        if found is None or found["fingerprint"] != fingerprint(trained):
            return {"processes": [], "baselines": None}
        return found

    def put(self, trained: Trained, setting: str, record: Record) -> None:
        """Keeps a record."""
        kept = {
            "name": trained.name,
            "family": trained.family,
            "threads": setting,
            "fingerprint": fingerprint(trained),
        }
        self._records[_key(trained, setting)] = {**record, **kept}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        written = self._path.with_suffix(".part")
        written.write_text(json.dumps(self._records, indent=1))
        os.replace(written, self._path)


def _key(trained: Trained, setting: str) -> str:
    return f"{trained.name} | {setting}"
