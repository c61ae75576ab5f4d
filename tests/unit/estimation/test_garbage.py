"""The garbage collector while a graph is made, and afterwards."""

from __future__ import annotations

import gc
import weakref

import pytest

from tensorboard_plugin_memest.estimation.garbage import without_full_collections


class Node:
    """Something that only the collector can free, as it holds itself."""

    def __init__(self) -> None:
        self.itself = self


def full_collections() -> int:
    return gc.get_stats()[2]["collections"]


def test_young_garbage_is_collected_and_the_old_left_alone():
    gc.collect()
    before = full_collections()
    with without_full_collections():
        gone = weakref.ref(Node())
        # Enough lists for many collections of the middle generation.
        kept = [[number] for number in range(gc.get_threshold()[0] * 1000)]
        assert gone() is None
        assert full_collections() == before
    assert len(kept) > 1000


@without_full_collections()
def _failing() -> None:
    raise ValueError(gc.get_threshold()[2])


def test_the_thresholds_come_back_whatever_happens():
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="100000"):
        _failing()
    assert gc.get_threshold() == before
