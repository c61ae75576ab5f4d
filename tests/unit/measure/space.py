"""Profile files written by hand with TensorFlow's own schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorflow.tsl.profiler.protobuf import xplane_pb2

EPOCH_NS = 1_796_025_257_718_539_676


class Space:
    """An XSpace under construction, texts stored once and referred to as TensorFlow does."""

    def __init__(self, *, host: str = "worker", started_ns: int = EPOCH_NS, plane: str = "/host:CPU") -> None:
        self.space = xplane_pb2.XSpace()
        if host:
            self.space.hostnames.append(host)
        self.plane = self.space.planes.add(name=plane)
        environment = self.space.planes.add(name="Task Environment")
        environment.stat_metadata[1].name = "profile_start_time"
        environment.stats.add(metadata_id=1, uint64_value=started_ns)
        self._names: dict[str, int] = {}
        self._events: dict[str, int] = {}

    def line(self, name: str, timestamp_ns: int = 0) -> Any:
        return self.plane.lines.add(name=name, timestamp_ns=timestamp_ns)

    def event(self, line: Any, name: str, at_ns: int, duration_ns: int = 0, **stats: int | float | str) -> None:
        number = self._events.setdefault(name, len(self._events) + 1)
        self.plane.event_metadata[number].name = name
        event = line.events.add(metadata_id=number, offset_ps=at_ns * 1000, duration_ps=duration_ns * 1000)
        for key, value in stats.items():
            stat = event.stats.add(metadata_id=self._name(key))
            if isinstance(value, str):
                stat.ref_value = self._name(value)
            elif isinstance(value, float):
                stat.double_value = value
            else:
                stat.int64_value = value

    def memory(self, line: Any, at_ns: int, in_use: int, size: int, *, free: bool = False, **stats: int | str) -> None:
        self.event(
            line,
            "MemoryDeallocation" if free else "MemoryAllocation",
            at_ns,
            **{
                "allocator_name": "bfc",
                "bytes_reserved": 0,
                "bytes_allocated": in_use,
                "fragmentation": 0.5,
                "requested_bytes": size - 1,
                "allocation_bytes": size,
                "addr": 2**46 + size,
                **stats,
            },
        )

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.space.SerializeToString())
        return path

    def _name(self, text: str) -> int:
        number = self._names.setdefault(text, len(self._names) + 1)
        self.plane.stat_metadata[number].name = text
        return number
