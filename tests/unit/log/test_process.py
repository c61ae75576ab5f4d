"""Where in a run's directory a process writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tensorboard_plugin_memest.log.process import part_of_process, worker_number

TWO = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}


def config(job, index, cluster=TWO):
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


@pytest.mark.parametrize(
    ("tf_config", "number"),
    [
        (config("chief", 0), 0),
        (config("worker", 0), 1),
        (config("worker", 1), 2),
        (config("evaluator", 0), 3),
        (config("worker", "1", {"worker": ["a:1", "b:1"]}), 1),
        (config("worker", 0, {"worker": ["a:1"]}), None),
        (config("painter", 0), None),
        ("", None),
        ("[]", None),
        ("{}", None),
        ('{"cluster": 3, "task": {"type": "worker", "index": 0}}', None),
        ("not JSON", None),
    ],
)
def test_workers_are_numbered_through(tf_config, number):
    assert worker_number(tf_config) == number


def test_the_first_worker_takes_the_directory_and_the_others_their_own(monkeypatch, tmp_path):
    for job, index, part in (("chief", 0, ""), ("worker", 0, "worker_1"), ("worker", 1, "worker_2")):
        monkeypatch.setenv("TF_CONFIG", config(job, index))
        assert part_of_process(str(tmp_path)) == part


WRITE = """
import sys, time
from tensorboard_plugin_memest.log.writer import RunWriter
writer = RunWriter(sys.argv[1])
writer.write_notes(["there"])
print("written", flush=True)
sys.stdin.read()
writer.close()
print("closed", flush=True)
sys.stdin.close()
time.sleep(60)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not tell which files are open")
def test_a_directory_that_another_process_writes_to_is_left_to_it(tmp_path):
    place = str(tmp_path / "memest")
    assert part_of_process(place) == ""
    other = subprocess.Popen(
        [sys.executable, "-c", WRITE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "written\n"
        assert part_of_process(place) == f"process_{os.getpid()}"
        other.stdin.close()
        assert other.stdout.readline() == "closed\n"
        # It lives on, but has finished its run.
        assert other.poll() is None
        assert part_of_process(place) == ""
    finally:
        other.kill()
        other.wait()
