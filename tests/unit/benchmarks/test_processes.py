"""Interpreters for benchmarks, one after another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.processes import ProcessError, in_new_interpreter


def note_itself(path: Path) -> None:
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")


def fail() -> None:
    raise ValueError("on purpose")


def test_each_call_has_an_interpreter_of_its_own_and_is_awaited(tmp_path):
    path = tmp_path / "processes"
    for _ in range(2):
        in_new_interpreter(note_itself, path)
    assert len({str(os.getpid()), *path.read_text().split()}) == 3


def test_a_failure_is_told():
    with pytest.raises(ProcessError, match="fail ended with exit code 1"):
        in_new_interpreter(fail)
