"""Names and versions of records."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tensorboard.compat.proto import summary_pb2

from tensorboard_plugin_memest.log.metadata import (
    Content,
    Kind,
    build_metadata,
    parse_content,
    profile_id,
    tag_for,
)
from tensorboard_plugin_memest.memory.format import FORMAT, NewerFormatError
from tests.samples import sample_profile


@pytest.mark.parametrize("kind", Kind)
def test_metadata_is_read_back(kind):
    metadata = build_metadata(kind)
    assert metadata.plugin_data.plugin_name == "memest"
    assert metadata.data_class == summary_pb2.DATA_CLASS_TENSOR
    assert json.loads(metadata.plugin_data.content) == {"format": FORMAT, "kind": kind.value}
    assert parse_content(metadata.plugin_data.content) == Content(FORMAT, kind)


def test_tags():
    assert tag_for(Kind.ESTIMATE) == "estimate"
    assert tag_for(Kind.PEAKS, "GPU:1") == "peaks/GPU:1"
    assert profile_id(sample_profile(host="box")) == "cpu_bfc@box/2026_01_01_00_00_00"


def test_a_newer_format_is_refused_in_words_even_of_a_kind_unknown_here():
    content = json.dumps({"format": FORMAT + 1, "kind": "dreams"}).encode()
    with pytest.raises(NewerFormatError, match="Upgrade memest where TensorBoard runs"):
        parse_content(content)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"format": 1}', b'{"format": "1", "kind": "notes"}', b"\xff"]
)
def test_what_memest_did_not_write(content):
    with pytest.raises(ValueError, match="not what memest writes") as caught:
        parse_content(content)
    assert repr(content) in str(caught.value)


def test_an_unknown_kind_is_named():
    with pytest.raises(ValueError, match="'dreams'; memest knows estimate, headline, peaks, profile, notes"):
        parse_content(json.dumps({"format": FORMAT, "kind": "dreams"}).encode())


def test_what_the_plugin_shares_with_the_writer_needs_no_tensorflow():
    code = (
        "import sys, tensorboard_plugin_memest.log.metadata, tensorboard_plugin_memest.log.record;"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
