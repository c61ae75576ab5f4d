"""Versions of what is written down."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.format import FORMAT, NewerFormatError, check_format


@pytest.mark.parametrize("found", range(FORMAT + 1))
def test_what_this_version_reads(found):
    check_format("record", found)


def test_what_it_does_not():
    with pytest.raises(NewerFormatError, match=f"This record has format {FORMAT + 1}.*Upgrade memest"):
        check_format("record", FORMAT + 1)


@pytest.mark.parametrize("text", ["{}", "[]", '"estimate"', b"{}"])
def test_json_of_something_else_is_refused_in_words(text):
    with pytest.raises(UsageError, match="Pass what to_json"):
        Estimate.from_json(text)
