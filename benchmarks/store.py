"""Measurements kept in a JSON file, one record for each configuration and thread setting."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from benchmarks.configuration import Configuration
from benchmarks.fingerprint import fingerprint


class Store:
    """What was measured so far; every change is on disk at once, so measuring can be ended and taken up again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: dict[str, dict[str, Any]] = {}
        if path.exists():
            self._records = json.loads(path.read_text())

    def record(self, configuration: Configuration, threads: str) -> dict[str, Any]:
        """The record of a configuration, empty where nothing that still counts was measured."""
        found = self._records.get(_key(configuration, threads))
        if found is None or found["fingerprint"] != fingerprint(configuration):
            return {"processes": [], "baselines": None}
        return found

    def put(self, configuration: Configuration, threads: str, record: dict[str, Any]) -> None:
        """Keeps a record."""
        kept = {
            "name": configuration.name,
            "family": configuration.family,
            "threads": threads,
            "fingerprint": fingerprint(configuration),
        }
        self._records[_key(configuration, threads)] = {**record, **kept}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        written = self._path.with_suffix(".part")
        written.write_text(json.dumps(self._records, indent=1))
        os.replace(written, self._path)


def _key(configuration: Configuration, threads: str) -> str:
    return f"{configuration.name} | {threads}"
