"""Bytes as people write and read them, against the vectors the frontend is held to as well."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorboard_plugin_memest.memory.units import GIB, KIB, MIB, format_bytes, format_share, parse_bytes

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "units.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", VECTORS["format_bytes"], ids=lambda vector: str(vector["bytes"]))
def test_format_bytes_vectors(vector):
    assert format_bytes(vector["bytes"]) == vector["text"]


@pytest.mark.parametrize("vector", VECTORS["format_share"], ids=lambda vector: f"{vector['part']}/{vector['whole']}")
def test_format_share_vectors(vector):
    assert format_share(vector["part"], vector["whole"]) == vector["text"]


@pytest.mark.parametrize("vector", VECTORS["parse_bytes"], ids=lambda vector: repr(vector["size"]))
def test_parse_bytes_vectors(vector):
    if "error" in vector:
        with pytest.raises(ValueError, match=vector["error"]) as caught:
            parse_bytes(vector["size"])
        assert repr(vector["size"]) in str(caught.value), "the message repeats what it was given"
    else:
        assert parse_bytes(vector["size"]) == vector["bytes"]


@pytest.mark.parametrize("size", [1.5, True, None, b"1GiB", [1]])
def test_parse_bytes_of_another_type(size):
    with pytest.raises(TypeError, match="not " + repr(size).replace("[", r"\[")):
        parse_bytes(size)


@given(st.integers(-(2**60), 2**60))
def test_format_bytes_is_decimal_arithmetic_with_halves_away_from_zero(number):
    factor, unit, digits = next(
        (
            entry
            for entry in ((GIB, "GiB", "0.01"), (MIB, "MiB", "0.1"), (KIB, "KiB", "0.1"))
            if abs(number) >= entry[0]
        ),
        (1, "B", "1"),
    )
    expected = (Decimal(number) / factor).quantize(Decimal(digits), ROUND_HALF_UP)
    assert format_bytes(number) == f"{expected} {unit}"


@given(st.integers(1, 2**60))
def test_what_is_written_in_bytes_reads_back(number):
    assert parse_bytes(f"{number} B") == parse_bytes(number) == number
