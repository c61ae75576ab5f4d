"""A profile's file, decoded: every event of every allocator as columns, and what marks the training steps.

The file (`*.xplane.pb`) is an `XSpace` message. Its schema comes with TensorFlow; XProf and tensorboard-plugin-profile
read such files in native code and bring no Python classes for them.
"""

from __future__ import annotations

import importlib
import os
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from google.protobuf.message import DecodeError

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

SUFFIX = ".xplane.pb"

# Where TensorFlow keeps the schema: today, and where its sources have moved it.
_SCHEMAS = (
    "tensorflow.tsl.profiler.protobuf.xplane_pb2",
    "tensorflow.compiler.xla.tsl.profiler.protobuf.xplane_pb2",
    "xla.tsl.profiler.protobuf.xplane_pb2",
)

# Statistics of a memory event that are numbers, in the order of a row; names are TensorFlow's.
_NUMBERS = ("allocation_bytes", "requested_bytes", "bytes_allocated", "addr", "data_type")
# Those that are texts.
_TEXTS = ("tf_op", "region_type", "shape")
# A row begins with the time, the kind of event and the thread.
_ROW = 3 + len(_NUMBERS) + len(_TEXTS)

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
        ImportError: this TensorFlow does not bring the schema.
        OSError, tf.errors.OpError: the file cannot be opened.
    """
    path = os.fspath(path)
    space = _schema().XSpace()
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        space.ParseFromString(content)
    except DecodeError as error:
        raise ProfileError(f"{path} is not a complete profile ({error}); give a *{SUFFIX} file.") from error
    del content
    if not space.planes:
        raise ProfileError(f"{path} holds nothing; was its profile stopped?")
    decoder = _Decoder(_start_ns(space))
    for plane in space.planes:
        if plane.name.startswith("/host:"):
            decoder.add(plane)
    return Profile(
        host=space.hostnames[0] if space.hostnames else os.path.basename(path).removesuffix(SUFFIX),
        started_at=os.path.basename(os.path.dirname(path)),
        memory=decoder.memory(),
        steps=sorted(decoder.steps, key=lambda step: step.start_ns),
        functions=sorted(decoder.functions, key=lambda function: function.start_ns),
        backward_ns=np.sort(np.array(decoder.backward_ns, np.int64)),
    )


def _schema() -> Any:
    for name in _SCHEMAS:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(
        f"The schema of profiles (xplane_pb2) is not in this TensorFlow ({tf.__version__}); memest looked for "
        f"{', '.join(_SCHEMAS)}. Install a TensorFlow release that has it, such as 2.21."
    )


def _start_ns(space: Any) -> int:
    """When the profile started, in nanoseconds since 1970; 0 when unknown."""
    for plane in space.planes:
        for stat in plane.stats:
            if plane.stat_metadata[stat.metadata_id].name == "profile_start_time":
                return int(stat.uint64_value or stat.int64_value)
    return 0


def _in_columns(allocator: str, rows: array[int], texts: Sequence[str]) -> MemoryEvents:
    table = np.frombuffer(rows, np.int64).reshape(-1, _ROW)
    # Events are stamped while the allocator's lock is held, so their times are in the order of what happened.
    table = table[np.argsort(table[:, 0], kind="stable")]
    time_ns, allocates, thread, held, requested, in_use, address, dtype, op, region, shape = table.T
    return MemoryEvents(
        allocator=allocator,
        time_ns=time_ns,
        allocates=allocates == _ALLOCATION,
        bytes=held,
        requested_bytes=requested,
        in_use=in_use,
        address=address,
        op=op,
        region=region,
        shape=shape,
        thread=thread,
        dtype=dtype,
        texts=texts,
    )


# How many statistics an event has, and of those that are wanted the position, the number of its name, and its place in
# a row; -1 for the allocator's name.
_Layout = tuple[int, list[tuple[int, int, int]]]
_NO_LAYOUT: _Layout = (-1, [])


class _Decoder:
    """Reads planes one after the other. Loops are written for millions of events."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._rows: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self._texts = [""]
        self._text_index = {"": 0}
        self.steps: list[Execution] = []
        self.functions: list[Execution] = []
        self.backward_ns: list[int] = []

    def memory(self) -> list[MemoryEvents]:
        """The events of every allocator, by its id."""
        found = sorted(allocator for allocator, rows in self._rows.items() if rows)
        return [_in_columns(allocator, self._rows[allocator], self._texts) for allocator in found]

    def add(self, plane: Any) -> None:
        names = {number: metadata.name for number, metadata in plane.event_metadata.items()}
        stat_names = {number: metadata.name for number, metadata in plane.stat_metadata.items()}
        kinds: dict[int, int] = {}
        read_row = self._row_reader(stat_names)
        for line in plane.lines:
            thread = self._text(line.name)
            # Usually counted from the profile's start already; some collectors leave the time of day.
            base_ns = line.timestamp_ns
            if self._start_ns and base_ns >= self._start_ns:
                base_ns -= self._start_ns
            for event in line.events:
                number = event.metadata_id
                kind = kinds.get(number)
                if kind is None:
                    kind = kinds[number] = _kind(names.get(number, ""), event, stat_names)
                if kind == _OTHER:
                    continue
                time_ns = base_ns + event.offset_ps // 1000
                if kind <= _DEALLOCATION:
                    read_row(event.stats, time_ns, kind, thread)
                elif kind == _BACKWARD:
                    self.backward_ns.append(time_ns)
                else:
                    end_ns = base_ns + (event.offset_ps + event.duration_ps) // 1000
                    if kind == _STEP:
                        numbers = [s.int64_value or s.uint64_value for s in event.stats if _is_step(s, stat_names)]
                        if numbers:
                            self.steps.append(Execution(names[number], numbers[0], time_ns, end_ns))
                    else:
                        self.functions.append(
                            Execution(names[number].removeprefix(_FUNCTION_PREFIX), None, time_ns, end_ns)
                        )

    def _text(self, text: str) -> int:
        index = self._text_index.setdefault(text, len(self._texts))
        if index == len(self._texts):
            self._texts.append(text)
        return index

    def _row_reader(self, stat_names: dict[int, str]) -> Callable[[Any, int, int, int], None]:
        """A function that adds a memory event with its statistics, time, kind and thread to its allocator's rows."""
        by_name = {name: number for number, name in stat_names.items()}
        number_slots = {by_name[name]: slot for slot, name in enumerate(_NUMBERS) if name in by_name}
        text_slots = {by_name[name]: slot + len(_NUMBERS) for slot, name in enumerate(_TEXTS) if name in by_name}
        slots = {**number_slots, **text_slots}
        allocator_stat = by_name.get("allocator_name")
        first_text = len(_NUMBERS)
        width = len(_NUMBERS) + len(_TEXTS)
        no_rows = self._rows[""]
        referred: dict[int, int] = {}
        allocators: dict[int, array[int]] = {}
        # An event of a kind has the same statistics in the same order, as one place in TensorFlow writes them all. So
        # those that nobody wants are not even looked at; that they are the same is checked.
        layouts: dict[int, _Layout] = {}

        def layout_of(stats: Any) -> _Layout:
            places = []
            for position, stat in enumerate(stats):
                slot = -1 if stat.metadata_id == allocator_stat else slots.get(stat.metadata_id)
                if slot is not None:
                    places.append((position, stat.metadata_id, slot))
            return len(stats), places

        def rows_of_allocator(stat: Any) -> array[int]:
            rows = self._rows[self._texts[text_index(stat)]]
            if stat.ref_value:
                allocators[stat.ref_value] = rows
            return rows

        def text_index(stat: Any) -> int:
            # Texts are stored once, as names of statistics, and referred to by number.
            reference = stat.ref_value
            if not reference:
                # A text that reads like a number is stored as one.
                return self._text(stat.str_value or str(stat.int64_value or stat.uint64_value or ""))
            index = referred.get(reference)
            if index is None:
                index = referred[reference] = self._text(stat_names[reference])
            return index

        def add_row(stats: Any, time_ns: int, kind: int, thread: int) -> None:
            count, places = layouts.get(kind, _NO_LAYOUT)
            if len(stats) != count:
                count, places = layouts[kind] = layout_of(stats)
            row = [0] * width
            rows = no_rows
            for position, number, slot in places:
                stat = stats[position]
                if stat.metadata_id != number:
                    layouts[kind] = layout_of(stats)
                    add_row(stats, time_ns, kind, thread)
                    return
                if slot < 0:
                    rows = allocators.get(stat.ref_value) or rows_of_allocator(stat)
                elif slot < first_text:
                    row[slot] = stat.int64_value or stat.uint64_value
                else:
                    row[slot] = referred.get(stat.ref_value) or text_index(stat)
            rows.extend((time_ns, kind, thread, *row))

        return add_row


def _kind(name: str, event: Any, stat_names: dict[int, str]) -> int:
    """What an event is, told by its name and the first event of that name."""
    if name == "MemoryAllocation":
        return _ALLOCATION
    if name == "MemoryDeallocation":
        return _DEALLOCATION
    if any(_is_step(stat, stat_names) for stat in event.stats):
        return _STEP
    if name.startswith(_FUNCTION_PREFIX):
        return _FUNCTION
    return _BACKWARD if "gradient_tape/" in name else _OTHER


def _is_step(stat: Any, stat_names: dict[int, str]) -> bool:
    return stat_names.get(stat.metadata_id) == "step_num"
