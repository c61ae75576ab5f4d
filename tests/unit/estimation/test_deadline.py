"""Estimates that have to end in time."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from threading import Event

import keras
import pytest

from tensorboard_plugin_memest.estimation import deadline as module
from tensorboard_plugin_memest.estimation.deadline import TimeIsUp, check_deadline, deadline, wait_for
from tensorboard_plugin_memest.estimation.model import estimate

L = keras.layers


class Clock:
    """Stands still for so many looks; then it is too late."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> float:
        self.looks -= 1
        return 0.0 if self.looks >= 0 else 10.0


@pytest.fixture
def model() -> keras.Model:
    model = keras.Sequential([keras.Input((8, 8, 1)), L.Conv2D(4, 3), L.Flatten(), L.Dropout(0.1), L.Dense(3)])
    model.compile("adam", "mse", jit_compile=False)
    return model


def test_an_estimate_ends_wherever_it_is_when_the_time_is_up_and_leaves_no_trace(model, monkeypatch):
    before = estimate(model, batch_size=2, device="GPU")
    ended = 0
    for looks in (0, 1, 7, 50, 200, 400, 600):
        monkeypatch.setattr(module, "monotonic", Clock(looks))
        with deadline(5):
            try:
                estimate(model, batch_size=2, device="GPU")
            except TimeIsUp:
                ended += 1
        monkeypatch.undo()
        assert not model.optimizer.built
    assert ended >= 5
    assert estimate(model, batch_size=2, device="GPU").to_json() == before.to_json()


def test_of_two_deadlines_the_earlier_one_holds(monkeypatch):
    monkeypatch.setattr(module, "monotonic", lambda: 7.0)
    check_deadline()
    with deadline(5), pytest.raises(TimeIsUp), deadline(100):
        check_deadline()
    with deadline(100):
        check_deadline()


def test_nobody_waits_longer_for_another_thread():
    go_on = Event()
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(lambda: go_on.wait() and 3)
        with deadline(module.monotonic() + 0.01), pytest.raises(TimeIsUp):
            wait_for(answer)
        go_on.set()
        assert wait_for(answer) == 3
        with deadline(module.monotonic() + 3600):
            assert wait_for(answer) == 3


def test_what_another_thread_raises_is_not_about_this_deadline():
    failed: Future[None] = Future()
    failed.set_exception(NotYet("the other thread's"))
    with deadline(module.monotonic() + 3600), pytest.raises(NotYet, match="the other thread's"):
        wait_for(failed)
