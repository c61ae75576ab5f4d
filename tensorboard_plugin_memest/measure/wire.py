"""The wire format of protocol buffers, read for millions of messages at once.

Classes made of a schema turn every message into objects, which for the events of a long profile takes seconds and ten
times the memory of the file. Here messages are stretches of one array of bytes, and the same field of all of them is
read in one go. See "Encoding" in the protocol buffers documentation.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are no protocol buffer, or not all of one."""


class Field(NamedTuple):
    """One field of one message.

    Attributes:
        number: its number in the schema.
        kind: VARINT, FIXED64, LENGTH or FIXED32.
        value: the number of a VARINT; where the content of another kind begins.
        end: where it ends.
    """

    number: int
    kind: int
    value: int
    end: int


def fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """The fields of the message that lies in `data` from `at` to `end`.

    Raises:
        WireError: it is none.
    """
    while at < end:
        tag, at = _varint(data, at, end)
        kind = tag & 7
        if kind == VARINT:
            value, at = _varint(data, at, end)
            yield Field(tag >> 3, kind, value, at)
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if size is None:
            if kind != LENGTH:
                raise WireError(f"there is no kind {kind} of fields")
            size, at = _varint(data, at, end)
        if at + size > end:
            raise WireError("a field goes beyond its message")
        yield Field(tag >> 3, kind, at, at + size)
        at += size


def messages(data: bytes, at: int, end: int, number: int) -> tuple[Integers, Integers, list[Field]]:
    """The messages in field `number` of a message: where each begins and ends; and the other fields, of which few.

    Raises:
        WireError: it is no message.
    """
    wanted = number << 3 | LENGTH
    begins, ends, others = array("q"), array("q"), []
    begin, finish = begins.append, ends.append  # looked up once, not for every message
    while at < end:
        if data[at] == wanted:
            size = data[at + 1] if at + 1 < end else 128
            if size < 128:
                at += 2
            else:
                size, at = _varint(data, at + 1, end)
            begin(at)
            at += size
            finish(at)
        else:
            field = next(fields(data, at, end))
            others.append(field)
            at = field.end
    if at > end:
        raise WireError("a field goes beyond its message")
    return np.frombuffer(begins, np.int64), np.frombuffer(ends, np.int64), others


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a number does not end")


class Column(NamedTuple):
    """One field of each of many messages.

    Attributes:
        rows: which of the messages.
        number: the field's number, for each of these.
        kind: VARINT, FIXED64, LENGTH or FIXED32.
        value: the number of a VARINT, as a signed one; where the content of another kind begins.
        end: where it ends.
    """

    rows: Integers
    number: Integers
    kind: Integers
    value: Integers
    end: Integers


def columns(data: Bytes, begins: Integers, ends: Integers) -> Iterator[Column]:
    """The first field of every message, then the second of each that has one, and so on.

    Raises:
        WireError: one of them is no message.
    """
    rows = np.flatnonzero(begins < ends)
    at = begins[rows]
    while rows.size:
        tags, at = _varints(data, at)
        kind = tags & 7
        value, after = at, at
        is_number = (kind == VARINT) | (kind == LENGTH)
        if is_number.all():
            value, after = _varints(data, at)
        else:
            value, after = at.copy(), at.copy()
            value[is_number], after[is_number] = _varints(data, at[is_number])
        has_size = kind == LENGTH
        begin = np.where(kind == VARINT, value, after)
        after = after + np.where(has_size, value, 0) + np.where(kind == FIXED64, 8, 0) + np.where(kind == FIXED32, 4, 0)
        if (after > ends[rows]).any() or (after <= at).any():
            raise WireError("a field goes beyond its message")
        yield Column(rows, tags >> 3, kind, begin, after)
        left = after < ends[rows]
        rows, at = rows[left], after[left]


def _varints(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """The numbers at many places, and where each ends."""
    try:
        byte = data[at]
        value = (byte & 0x7F).astype(np.uint64)
        at = at + 1
        more = np.flatnonzero(byte >= 0x80)
        shift = 7
        while more.size:
            if shift > 63:
                raise WireError("a number does not end")
            byte = data[at[more]]
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[more] += 1
            more = more[byte >= 0x80]
            shift += 7
    except IndexError:
        raise WireError("the last field is cut off") from None
    return value.view(np.int64), at
