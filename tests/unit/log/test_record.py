"""Records as bytes."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.log.metadata import Kind
from tensorboard_plugin_memest.log.record import Notes, decode, encode, kind_and_tag
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.format import FORMAT, NewerFormatError
from tests.samples import (
    sample_advice,
    sample_estimate,
    sample_host,
    sample_peaks,
    sample_profile,
    sample_what_if,
    step_items,
)
from tests.strategies import estimates, measured_peaks, measured_profiles, names

notes = st.builds(Notes, st.lists(names).map(tuple))
CRASH = Explanation(
    "XLA", "ran out", shape=(3, 4), category=Category.GRADIENTS, live=tuple(step_items()), advice=("a",)
)
RECORDS = [sample_estimate(), sample_peaks(), sample_profile(), Notes(("No GPU here.", "ß ☃")), CRASH, sample_host()]


@given(st.one_of(estimates, measured_peaks, measured_profiles, notes, st.just(CRASH)))
def test_round_trip(record):
    kind, _ = kind_and_tag(record)
    assert decode(kind, encode(record)) == record


def test_advice_comes_back_equal():
    assert decode(Kind.ADVICE, encode(sample_advice())) == sample_advice()


def test_other_choices_come_back_equal():
    assert decode(Kind.WHAT_IF, encode(sample_what_if())) == sample_what_if()


def test_a_host_estimate_comes_back_equal():
    assert decode(Kind.HOST, encode(sample_host())) == sample_host()


def test_kinds_and_tags():
    assert [kind_and_tag(record) for record in RECORDS] == [
        (Kind.ESTIMATE, "estimate"),
        (Kind.PEAKS, "peaks/CPU:0"),
        (Kind.PROFILE, "profile/cpu_bfc@host/2026_01_01_00_00_00"),
        (Kind.NOTES, "notes"),
        (Kind.CRASH, "crash"),
        (Kind.HOST, "host"),
    ]
    with pytest.raises(TypeError, match="not 'an estimate'"):
        kind_and_tag("an estimate")


def test_compression_is_worth_it():
    text = sample_estimate().to_json()
    assert len(encode(sample_estimate())) < len(text) / 3


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_newer_format_is_refused_in_words(record):
    data = json.loads(zlib.decompress(encode(record)))
    assert data["format"] == FORMAT
    data["format"] = FORMAT + 1
    with pytest.raises(NewerFormatError, match="Upgrade memest"):
        decode(kind_and_tag(record)[0], zlib.compress(json.dumps(data).encode()))


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(
    "payload",
    [b"", b"not compressed", *map(zlib.compress, [b"", b"{", b"[]", b"{}", b'{"format": 1}', b"null", b"\xff"])],
)
def test_broken_bytes_are_one_kind_of_error(kind, payload):
    with pytest.raises(ValueError, match=r"."):
        decode(kind, payload)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused_here_and_not_by_browsers(number):
    with pytest.raises(ValueError, match=r"It holds (NaN|Infinity), which is no number"):
        decode(Kind.ESTIMATE, change("phases.2.live_at_peak.0.bytes", number))
    advice = sample_advice()
    broken = replace(advice, levers=(replace(advice.levers[0], saving_bytes=number),))
    with pytest.raises(ValueError, match=r"It holds (NaN|Infinity), which is no number"):
        decode(Kind.ADVICE, encode(broken))


def test_a_record_of_another_kind():
    with pytest.raises(ValueError, match="no peaks that memest wrote"):
        decode(Kind.PEAKS, encode(RECORDS[3]))


def change(text: str, value) -> bytes:
    data = json.loads(sample_estimate().to_json())
    where = data
    *path, last = text.split(".")
    for name in path:
        where = where[int(name) if name.isdigit() else name]
    where[last] = value
    return zlib.compress(json.dumps(data).encode())


def test_an_estimate_that_cannot_answer_is_found_at_once():
    with pytest.raises(ValueError, match="neither a first step nor a later one"):
        decode(Kind.ESTIMATE, change("phases", []))
    with pytest.raises(ValueError, match="no estimate that memest wrote"):
        decode(Kind.ESTIMATE, change("phases.2.live_at_peak.0.bytes", "many"))
    with pytest.raises(ValueError, match="'dreams' is not a valid Category"):
        decode(Kind.ESTIMATE, change("phases.2.live_at_peak.0.category", "dreams"))
