"""Functions of a model that are watched."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import pytest

from tensorboard_plugin_memest.measure.watch import WatchedFunction, unwatch, watch


class Listener:
    def __init__(self):
        self.told = []
        self.returned = 0

    def end(self):
        self.returned += 1

    def tell(self, error):
        self.told.append(error)


def twice(number):
    if number < 0:
        raise ValueError(number)
    return 2 * number


twice.count = 3


def test_ends_and_errors_are_told_and_errors_go_on_unchanged():
    model, listener = SimpleNamespace(step=twice), Listener()
    watch(model, "step", listener.end, listener.tell)
    assert model.step(4) == 8
    assert model.step.count == 3
    with pytest.raises(ValueError, match="-1") as caught:
        model.step(-1)
    assert (listener.returned, listener.told) == (1, [caught.value])


def test_the_function_is_put_back_and_watched_once():
    model, listener = SimpleNamespace(step=twice), Listener()
    watch(model, "step", listener.end, listener.tell)
    watch(model, "step", listener.end, listener.tell)
    with pytest.raises(ValueError, match="-2"):
        model.step(-2)
    assert len(listener.told) == 1
    unwatch(model, "step")
    assert model.step is twice
    unwatch(model, "step")
    unwatch(model, "missing")
    watch(SimpleNamespace(step=None), "step", listener.end, listener.tell)


def test_who_watches_is_not_kept():
    model = SimpleNamespace(step=twice)
    watch(model, "step", Listener().end, Listener().tell)
    assert model.step(5) == 10
    with pytest.raises(ValueError, match="-3"):
        model.step(-3)


def test_an_empty_copy_is_no_endless_question():
    empty = WatchedFunction.__new__(WatchedFunction)
    assert not hasattr(empty, "count")
    with pytest.raises(TypeError):
        pickle.dumps(WatchedFunction(twice, Listener().end, Listener().tell))
    assert copy.copy(twice) is twice
