"""An estimate of a data pipeline as plain data and as text."""

from __future__ import annotations

import json

import pytest

from tensorboard_plugin_memest.memory.format import FORMAT, NewerFormatError
from tensorboard_plugin_memest.memory.host import HostEstimate
from tests.samples import sample_host

EACH = 1491 * 257 * 4


def test_the_peak_is_the_sum_of_the_stages():
    assert sample_host().peak_bytes == 810 * EACH + 810 * 24 + 2 * EACH + 1


def test_json_and_back():
    assert HostEstimate.from_json(sample_host().to_json()) == sample_host()


def test_a_newer_format_is_refused_in_words():
    data = {**json.loads(sample_host().to_json()), "format": FORMAT + 1}
    with pytest.raises(NewerFormatError, match="Upgrade memest"):
        HostEstimate.from_json(json.dumps(data))


def test_the_text_tells_stages_levers_and_assumptions():
    text = str(sample_host())
    assert text.splitlines()[0] == "Host memory of the data pipeline: 1.16 GiB (1,244,610,817 bytes)"
    assert "For a moment at the start: 1.17 GiB" in text
    assert "holes of the allocators: up to 7.3 MiB" in text
    assert "1.16 GiB        810" in text
    assert "- cache in a file (1.16 GiB): It is shared." in text
    assert "\nimages as uint8. " in text
    assert "\n    tf.cast(image, tf.uint8)\n" in text
    assert 'dataset.cache("file")' not in text
    assert text.endswith("- AUTOTUNE is taken to prefetch 2 elements.")


def test_a_notebook_shows_the_same_text():
    assert sample_host()._repr_html_().startswith("<pre>Host memory of the data pipeline: 1.16 GiB")
