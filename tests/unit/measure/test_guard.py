"""Failures of memest inside a training: one warning a part, and silence."""

from __future__ import annotations

import warnings

import pytest

from tensorboard_plugin_memest.measure.guard import Guard


def fail() -> None:
    raise OSError("disk full")


def test_results_pass_through():
    assert Guard().run("measuring", lambda x, *, y: x + y, 1, y=2) == 3


def test_a_failure_is_told_once_with_its_part_and_reason_and_the_part_is_left_out():
    guard = Guard()
    with pytest.warns(RuntimeWarning, match=r"memest failed while measuring \(OSError: disk full\); the training goes"):
        assert guard.run("measuring", fail) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        called = []
        assert guard.run("measuring", called.append, 1) is None
        assert called == []
        guard.run("profiling", called.append, 2)
        assert called == [2]


def test_an_interrupt_is_not_memest_s_failure():
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Guard().run("measuring", interrupt)
