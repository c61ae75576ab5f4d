"""Protocol buffers read from their bytes, held against protocol buffers' own classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tensorboard_plugin_memest.measure.wire import FIXED64, LENGTH, VARINT, WireError, columns, fields, messages

numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 300))


@st.composite
def stats(draw):
    stat = xplane_pb2.XStat(metadata_id=draw(numbers))
    kind = draw(st.sampled_from(["int64_value", "uint64_value", "ref_value", "double_value", "str_value", None]))
    if kind == "str_value":
        stat.str_value = draw(st.text(max_size=200))
    elif kind == "double_value":
        stat.double_value = draw(st.floats(allow_nan=False))
    elif kind is not None:
        setattr(stat, kind, abs(draw(numbers)) if kind != "int64_value" else draw(numbers))
    return stat


def signed(value):
    return value - 2**64 if value >= 2**63 else value


@given(st.lists(stats(), max_size=20))
def test_fields_of_many_messages_are_those_that_each_has(made):
    event = xplane_pb2.XEvent(metadata_id=7, offset_ps=5, stats=made)
    data = event.SerializeToString()
    begins, ends, others = messages(data, 0, len(data), 4)
    assert [(field.number, field.value) for field in others] == [(1, 7), (2, 5)]
    assert [data[begin:end] for begin, end in zip(begins, ends, strict=True)] == [
        one.SerializeToString() for one in made
    ]
    one_by_one = [
        [(field.number, field.kind, signed(field.value), field.end) for field in fields(data, int(begin), int(end))]
        for begin, end in zip(begins, ends, strict=True)
    ]
    together = [[] for _ in made]
    for column in columns(np.frombuffer(data, np.uint8), begins, ends):
        for row, *field in zip(*(part.tolist() for part in column), strict=True):
            together[row].append(tuple(field))
    assert together == one_by_one
    for stat, found in zip(made, together, strict=True):
        told = {number: (kind, value, end) for number, kind, value, end in found}
        if stat.metadata_id:
            assert told[1][:2] == (VARINT, stat.metadata_id)
        if stat.HasField("int64_value"):
            assert told[4][:2] == (VARINT, stat.int64_value)
        if stat.HasField("str_value"):
            kind, begin, end = told[5]
            assert (kind, data[begin:end].decode()) == (LENGTH, stat.str_value)
        if stat.HasField("double_value"):
            kind, begin, end = told[2]
            assert (kind, np.frombuffer(data[begin:end])[0]) == (FIXED64, stat.double_value)


def whole() -> bytes:
    stat = xplane_pb2.XStat(metadata_id=300, str_value="x" * 200)
    return xplane_pb2.XEvent(metadata_id=1, offset_ps=2**40, stats=[stat, stat]).SerializeToString()


@pytest.mark.parametrize("length", range(1, len(whole())))
def test_what_is_cut_off_is_noticed_wherever_it_is(length):
    data = whole()[:length]
    complete = xplane_pb2.XEvent()
    try:
        complete.ParseFromString(data)
        is_whole = True
    except Exception:
        is_whole = False
    at = np.array([0]), np.array([length])
    for read in (
        lambda: list(fields(data, 0, length)),
        lambda: messages(data, 0, length, 4),
        lambda: list(columns(np.frombuffer(data, np.uint8), *at)),
    ):
        if is_whole:
            read()
        else:
            with pytest.raises(WireError):
                read()


@pytest.mark.parametrize("data", [b"\x0b\x01", b"\xff" * 12, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
def test_what_is_no_message_is_refused(data):
    for read in (
        lambda: list(fields(data, 0, len(data))),
        lambda: list(columns(np.frombuffer(data, np.uint8), np.array([0]), np.array([len(data)]))),
    ):
        with pytest.raises(WireError):
            read()
