"""TensorBoard's own reading and serving of real event files, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext

OpenLogdir = Callable[[Path], MultiplexerDataProvider]


@pytest.fixture
def open_logdir() -> OpenLogdir:
    """Gives the data provider of TensorBoard's slow loader for a log directory, loaded."""

    def load(logdir: Path) -> MultiplexerDataProvider:
        multiplexer = EventMultiplexer().AddRunsFromDirectory(str(logdir))
        multiplexer.Reload()
        return MultiplexerDataProvider(multiplexer, str(logdir))

    return load


@pytest.fixture
def ctx() -> RequestContext:
    return RequestContext()
