"""A profile's file, decoded: every event of every allocator as columns, and what marks the training steps.

The file (`*.xplane.pb`) is an `XSpace` message (`tsl/profiler/protobuf/xplane.proto`). It is read from its bytes:
objects of every event and statistic would take ten times its memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tensorboard_plugin_memest.measure.wire import LENGTH, Column, Field, Integers, WireError, columns, fields, messages

Booleans = npt.NDArray[np.bool_]

SUFFIX = ".xplane.pb"

# Statistics of a memory event that are numbers, in the order of a row; names are TensorFlow's.
_NUMBERS = ("allocation_bytes", "requested_bytes", "bytes_allocated", "addr", "data_type")
# Those that are texts.
_TEXTS = ("tf_op", "region_type", "shape")
# A row has the time, the kind of event and the thread, these statistics, and the allocator's name.
_FIRST_NUMBER = 3
_FIRST_TEXT = _FIRST_NUMBER + len(_NUMBERS)
_ALLOCATOR = _FIRST_TEXT + len(_TEXTS)
_ROW = _ALLOCATOR + 1

# Events decoded at once: enough to be quick, and few enough to stay in a processor's cache in parts.
_CHUNK = 200_000

_ALLOCATION, _DEALLOCATION, _STEP, _FUNCTION, _BACKWARD, _OTHER = range(6)
_FUNCTION_PREFIX = "EagerLocalExecute: __inference_"


class ProfileError(ValueError):
    """A profile cannot be read."""


@dataclass(frozen=True)
class MemoryEvents:
    """Every allocation and deallocation of one allocator, in the order of time; every column has one entry an event.

    Attributes:
        allocator: the allocator's id.
        time_ns: nanoseconds since the profile started.
        allocates: whether it is an allocation.
        bytes: what the allocator handed out or took back, rounding included.
        requested_bytes: what was asked for.
        in_use: bytes in use just after the event.
        address: where the memory is.
        op: index in `texts` of the op that asked for it; of the empty text where there is none, as for deallocations.
        region: index in `texts` of `"output"`, `"temp"` or another kind of use; empty for deallocations.
        shape: index in `texts` of the tensor's shape, such as `"[8,128]"`; empty where there is none.
        thread: index in `texts` of the name of the thread it happened on.
        dtype: number of the TensorFlow data type; 0 where there is none.
        texts: what the indexes mean.
    """

    allocator: str
    time_ns: Integers
    allocates: Booleans
    bytes: Integers
    requested_bytes: Integers
    in_use: Integers
    address: Integers
    op: Integers
    region: Integers
    shape: Integers
    thread: Integers
    dtype: Integers
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True)
class Execution:
    """A stretch of the profile: a marked step, or a run of a `tf.function`.

    Attributes:
        name: name of the marker or of the function.
        number: the step's number; None for a function.
        start_ns: nanoseconds since the profile started.
        end_ns: the same, of its end.
    """

    name: str
    number: int | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Profile:
    """What a profile's file says about memory.

    Attributes:
        host: the host that was profiled.
        started_at: when it started, as its directory is named: `"2026_01_01_00_00_00"`.
        memory: the events of each allocator.
        steps: steps marked by Keras' TensorBoard callback, by `tf.profiler.experimental.Trace` or alike, in order.
        functions: runs of `tf.function`s from Python, in order.
        backward_ns: when ops of a backward pass (under `gradient_tape/`) began, sorted.
    """

    host: str
    started_at: str
    memory: Sequence[MemoryEvents]
    steps: Sequence[Execution]
    functions: Sequence[Execution]
    backward_ns: Integers


def read_xplane(path: str | os.PathLike[str]) -> Profile:
    """Decodes one `*.xplane.pb` in full.

    Args:
        path: the file; whatever `tf.io.gfile` opens.

    Raises:
        ProfileError: the file is no profile or not complete.
        OSError, tf.errors.OpError: the file cannot be opened.
    """
    path = os.fspath(path)
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        return _decoded(path, content)
    except (WireError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path} is not a complete profile ({error}); give a *{SUFFIX} file.") from error


# Numbers of fields, by message.
_SPACE_PLANES, _SPACE_HOSTNAMES = 1, 4
_PLANE_NAME, _PLANE_LINES, _PLANE_EVENT_NAMES, _PLANE_STAT_NAMES, _PLANE_STATS = 2, 3, 4, 5, 6
_LINE_NAME, _LINE_TIMESTAMP, _LINE_EVENTS = 2, 3, 4
_EVENT_NAME, _EVENT_OFFSET, _EVENT_DURATION, _EVENT_STATS = 1, 2, 3, 4
_STAT_NAME, _STAT_UINT64, _STAT_INT64, _STAT_TEXT, _STAT_REFERENCE = 1, 3, 4, 5, 7
_METADATA_NAME = 2
_ENTRY_KEY, _ENTRY_VALUE = 1, 2


def _decoded(path: str, content: bytes) -> Profile:
    begins, ends, others = messages(content, 0, len(content), _SPACE_PLANES)
    planes = [_Plane(content, begin, end) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    if not planes:
        raise ProfileError(f"{path} holds nothing; was its profile stopped?")
    hosts = [_text(content, field) for field in others if field.number == _SPACE_HOSTNAMES]
    decoder = _Decoder(content, next((start for plane in planes if (start := plane.start_ns())), 0))
    for plane in planes:
        if plane.name.startswith("/host:"):
            decoder.add(plane)
    return Profile(
        host=hosts[0] if hosts else os.path.basename(path).removesuffix(SUFFIX),
        started_at=os.path.basename(os.path.dirname(path)),
        memory=decoder.memory(),
        steps=sorted(decoder.steps, key=lambda step: step.start_ns),
        functions=sorted(decoder.functions, key=lambda function: function.start_ns),
        backward_ns=np.sort(np.concatenate([np.zeros(0, np.int64), *decoder.backward_ns])),
    )


def _text(content: bytes, field: Field) -> str:
    return content[field.value : field.end].decode()


class _Plane:
    """One plane: its name, where its lines lie, and the names that its events and statistics refer to by number."""

    def __init__(self, content: bytes, begin: int, end: int) -> None:
        self._content = content
        begins, ends, others = messages(content, begin, end, _PLANE_LINES)
        self.lines = list(zip(begins.tolist(), ends.tolist(), strict=True))
        self.name = ""
        self.event_names: dict[int, str] = {}
        self.stat_names: dict[int, str] = {}
        self._stats: list[Field] = []
        for field in others:
            if field.number == _PLANE_NAME:
                self.name = _text(content, field)
            elif field.number == _PLANE_EVENT_NAMES:
                self._add_name(self.event_names, field)
            elif field.number == _PLANE_STAT_NAMES:
                self._add_name(self.stat_names, field)
            elif field.number == _PLANE_STATS:
                self._stats.append(field)

    def start_ns(self) -> int:
        """When the profile started, in nanoseconds since 1970, if this plane knows; else 0."""
        for stat in self._stats:
            found = {field.number: field.value for field in fields(self._content, stat.value, stat.end)}
            if self.stat_names.get(found.get(_STAT_NAME, 0)) == "profile_start_time":
                return found.get(_STAT_UINT64) or found.get(_STAT_INT64) or 0
        return 0

    def _add_name(self, names: dict[int, str], entry: Field) -> None:
        key, name = 0, ""
        for field in fields(self._content, entry.value, entry.end):
            if field.number == _ENTRY_KEY:
                key = field.value
            elif field.number == _ENTRY_VALUE:
                for inner in fields(self._content, field.value, field.end):
                    if inner.number == _METADATA_NAME:
                        name = _text(self._content, inner)
        names[key] = name


class _Decoder:
    """Reads planes one after the other, events by the hundred thousand at once."""

    def __init__(self, content: bytes, start_ns: int) -> None:
        self._content = content
        self._bytes = np.frombuffer(content, np.uint8)
        self._start_ns = start_ns
        self._rows: list[Integers] = []
        self._texts = [""]
        self._text_index = {"": 0}
        self.steps: list[Execution] = []
        self.functions: list[Execution] = []
        self.backward_ns: list[Integers] = []

    def memory(self) -> list[MemoryEvents]:
        """The events of every allocator, by its id."""
        if not self._rows:
            return []
        rows = np.concatenate(self._rows)
        self._rows = []
        allocators = sorted(np.unique(rows[:, _ALLOCATOR]).tolist(), key=self._texts.__getitem__)
        return [self._in_columns(number, rows[rows[:, _ALLOCATOR] == number]) for number in allocators]

    def add(self, plane: _Plane) -> None:
        slots = np.full(max(plane.stat_names, default=0) + 2, -1, np.int64)
        for number, name in plane.stat_names.items():
            if name in _SLOTS:
                slots[number] = _SLOTS[name]
        kinds: dict[int, int] = {}
        for begin, end in plane.lines:
            self._add_line(plane, slots, kinds, begin, end)

    def _add_line(self, plane: _Plane, slots: Integers, kinds: dict[int, int], begin: int, end: int) -> None:
        begins, ends, others = messages(self._content, begin, end, _LINE_EVENTS)
        if not len(begins):
            return
        line = {field.number: field for field in others}
        thread = self._index(_text(self._content, line[_LINE_NAME]) if _LINE_NAME in line else "")
        # Usually counted from the profile's start already; some collectors leave the time of day.
        base_ns = line[_LINE_TIMESTAMP].value if _LINE_TIMESTAMP in line else 0
        if self._start_ns and base_ns >= self._start_ns:
            base_ns -= self._start_ns
        names = self._names_of(begins, ends)
        first_of = np.zeros(int(names.max()) + 1, np.int64)
        first_of[names[::-1]] = np.arange(len(names))[::-1]
        known = np.full(len(first_of), _OTHER, np.int64)
        for number in np.flatnonzero(np.bincount(names)).tolist():
            if number not in kinds:
                first = int(first_of[number])
                kinds[number] = self._kind(plane, number, int(begins[first]), int(ends[first]))
            known[number] = kinds[number]
        kind = known[names]
        of_backward = np.flatnonzero(kind == _BACKWARD)
        for column in columns(self._bytes, begins[of_backward], ends[of_backward]):
            offsets = column.value[column.number == _EVENT_OFFSET]
            self.backward_ns.append(base_ns + offsets // 1000)
        for index in np.flatnonzero((kind == _STEP) | (kind == _FUNCTION)).tolist():
            name = plane.event_names[int(names[index])]
            self._add_marker(plane, int(kind[index]), name, base_ns, int(begins[index]), int(ends[index]))
        of_memory = np.flatnonzero(kind <= _DEALLOCATION)
        for start in range(0, len(of_memory), _CHUNK):
            chosen = of_memory[start : start + _CHUNK]
            rows = np.zeros((len(chosen), _ROW), np.int64)
            rows[:, 1], rows[:, 2] = kind[chosen], thread
            for column in columns(self._bytes, begins[chosen], ends[chosen]):
                offset = column.number == _EVENT_OFFSET
                rows[column.rows[offset], 0] = column.value[offset] // 1000
                self._add_stats(plane, slots, rows, column)
            rows[:, 0] += base_ns
            self._rows.append(rows)

    def _names_of(self, begins: Integers, ends: Integers) -> Integers:
        """The number of each event's name, which nearly always comes first."""
        names = np.zeros(len(begins), np.int64)
        first = next(columns(self._bytes, begins, ends), None)
        if first is None:
            return names
        is_name = first.number == _EVENT_NAME
        names[first.rows[is_name]] = first.value[is_name]
        for index in first.rows[~is_name].tolist():
            for field in fields(self._content, int(begins[index]), int(ends[index])):
                if field.number == _EVENT_NAME:
                    names[index] = field.value
        if names.min() < 0 or names.max() > len(self._content):
            raise WireError("an event's name is out of range")
        return names

    def _kind(self, plane: _Plane, number: int, begin: int, end: int) -> int:
        """What an event is, told by its name and the first event of that name."""
        name = plane.event_names.get(number, "")
        if name == "MemoryAllocation":
            return _ALLOCATION
        if name == "MemoryDeallocation":
            return _DEALLOCATION
        if any(True for _ in self._step_numbers(plane, begin, end)):
            return _STEP
        if name.startswith(_FUNCTION_PREFIX):
            return _FUNCTION
        return _BACKWARD if "gradient_tape/" in name else _OTHER

    def _step_numbers(self, plane: _Plane, begin: int, end: int) -> Iterator[int]:
        for field in fields(self._content, begin, end):
            if field.number == _EVENT_STATS:
                stat = {one.number: one.value for one in fields(self._content, field.value, field.end)}
                if plane.stat_names.get(stat.get(_STAT_NAME, 0)) == "step_num":
                    yield stat.get(_STAT_INT64) or stat.get(_STAT_UINT64) or 0

    def _add_marker(self, plane: _Plane, kind: int, name: str, base_ns: int, begin: int, end: int) -> None:
        event = {field.number: field.value for field in fields(self._content, begin, end)}
        offset_ps, duration_ps = event.get(_EVENT_OFFSET, 0), event.get(_EVENT_DURATION, 0)
        start_ns, end_ns = base_ns + offset_ps // 1000, base_ns + (offset_ps + duration_ps) // 1000
        if kind == _FUNCTION:
            self.functions.append(Execution(name.removeprefix(_FUNCTION_PREFIX), None, start_ns, end_ns))
        else:
            for number in self._step_numbers(plane, begin, end):
                # Numbers are read as they are written, without a sign: that of building is -1.
                signed = number - 2**64 if number >= 2**63 else number
                self.steps.append(Execution(name, signed, start_ns, end_ns))
                break

    def _add_stats(self, plane: _Plane, slots: Integers, rows: Integers, events: Column) -> None:
        """Puts the statistics that are the fields `events`, one of each event at most, into `rows`."""
        is_stat = (events.number == _EVENT_STATS) & (events.kind == LENGTH)
        begins, ends, of = events.value[is_stat], events.end[is_stat], events.rows[is_stat]
        slot = np.full(len(of), -1, np.int64)
        number, value, end = np.zeros((3, len(of)), np.int64)
        for column in columns(self._bytes, begins, ends):
            is_name = column.number == _STAT_NAME
            slot[column.rows[is_name]] = slots[np.clip(column.value[is_name], -1, len(slots) - 1)]
            rest = column.rows[~is_name]
            number[rest], value[rest], end[rest] = column.number[~is_name], column.value[~is_name], column.end[~is_name]
        is_number = (slot >= 0) & (slot < _FIRST_TEXT) & ((number == _STAT_INT64) | (number == _STAT_UINT64))
        rows[of[is_number], slot[is_number]] = value[is_number]
        is_text = slot >= _FIRST_TEXT
        of, slot, number, value, end = of[is_text], slot[is_text], number[is_text], value[is_text], end[is_text]
        referred = number == _STAT_REFERENCE
        used, where = np.unique(value[referred], return_inverse=True)
        indexes = np.array([self._index(plane.stat_names.get(one, "")) for one in used.tolist()], np.int64)
        rows[of[referred], slot[referred]] = indexes[where]
        for one in np.flatnonzero(~referred).tolist():
            # Rare: texts are stored once and referred to. One that is a number is stored as such.
            is_written = number[one] == _STAT_TEXT
            text = self._content[value[one] : end[one]].decode() if is_written else str(value[one])
            rows[of[one], slot[one]] = self._index(text)

    def _index(self, text: str) -> int:
        index = self._text_index.setdefault(text, len(self._texts))
        if index == len(self._texts):
            self._texts.append(text)
        return index

    def _in_columns(self, allocator: int, rows: Integers) -> MemoryEvents:
        # Events are stamped while the allocator's lock is held, so their times are in the order of what happened.
        time_ns, kind, thread, held, requested, in_use, address, dtype, op, region, shape, _ = rows[
            np.argsort(rows[:, 0], kind="stable")
        ].T
        return MemoryEvents(
            allocator=self._texts[allocator],
            time_ns=time_ns,
            allocates=kind == _ALLOCATION,
            bytes=held,
            requested_bytes=requested,
            in_use=in_use,
            address=address,
            op=op,
            region=region,
            shape=shape,
            thread=thread,
            dtype=dtype,
            texts=self._texts,
        )


_SLOTS = {
    **{name: _FIRST_NUMBER + place for place, name in enumerate(_NUMBERS)},
    **{name: _FIRST_TEXT + place for place, name in enumerate(_TEXTS)},
    "allocator_name": _ALLOCATOR,
}
