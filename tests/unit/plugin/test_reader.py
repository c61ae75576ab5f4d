"""Records through TensorBoard's data provider, from real event files."""

from __future__ import annotations

import json
import time
import zlib

import pytest
from tensorboard import errors

from tensorboard_plugin_memest.log.metadata import Kind, tag_for
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.format import FORMAT
from tensorboard_plugin_memest.plugin.reader import Listed, Reader, natural, run_and_process
from tests.events import content, string_tensor, write_raw
from tests.samples import sample_estimate, sample_peaks, sample_profile


class Counted:
    """A data provider that counts what is read through it."""

    def __init__(self, provider):
        self._provider = provider
        self.reads = []

    def list_tensors(self, *args, **kwargs):
        return self._provider.list_tensors(*args, **kwargs)

    def read_tensors(self, *args, run_tag_filter, **kwargs):
        self.reads.append((*run_tag_filter.runs, *run_tag_filter.tags))
        return self._provider.read_tensors(*args, run_tag_filter=run_tag_filter, **kwargs)


@pytest.mark.parametrize(
    ("run", "parent"),
    [
        ("as-asked/memest", "as-asked"),
        ("a/b/memest", "a/b"),
        ("memest/memest", "memest"),
        ("memest", "."),
        (".", "."),
        (r"a\memest", "a"),
        ("a/memest-2", "a/memest-2"),
        ("line\nbreak/memest", "line\nbreak"),
        ("worker_1", "worker_1"),
        ("a/memest/worker_x", "a/memest/worker_x"),
    ],
)
def test_the_run_is_the_directory_around_the_records(run, parent):
    assert run_and_process(run) == (parent, None)


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("a/memest/worker_1", ("a", "worker 1")),
        ("memest/process_4711", (".", "process 4711")),
        (r"a\b\memest\worker_12", (r"a\b", "worker 12")),
    ],
)
def test_several_processes_of_a_run_write_below_its_records(run, found):
    assert run_and_process(run) == found


def test_several_processes_make_one_run(tmp_path, open_logdir, ctx, monkeypatch):
    def write(index, *, estimate, peak, note):
        cluster = {"worker": ["a:1", "b:1"]}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}))
        with RunWriter(tmp_path / "run") as writer:
            writer.write_estimate(estimate)
            writer.write_peaks(sample_peaks("GPU:0", peak_bytes=peak))
            writer.write_notes(["the same", note])

    write(1, estimate=sample_estimate(), peak=7000, note="one")
    write(0, estimate=sample_estimate(limit_bytes=10**9), peak=5000, note="none")
    run = Reader(open_logdir(tmp_path)).run(ctx, "", "run")
    assert [(peaks.label, peaks.peak_bytes) for peaks in run.peaks] == [("GPU:0", 5000), ("worker 1, GPU:0", 7000)]
    assert run.estimate == sample_estimate(limit_bytes=10**9)
    assert run.notes == ("the same", "none", "worker 1: the same", "worker 1: one")
    assert run.problems == []


@pytest.mark.parametrize("set_back", [0, 86400])
def test_a_crash_is_told_until_steps_are_recorded_after_it(tmp_path, open_logdir, ctx, monkeypatch, set_back):
    crash = Explanation("XLA", "ran out", bytes=7)
    with RunWriter(tmp_path / "run") as writer:
        writer.write_peaks(sample_peaks())
        writer.write_crash(crash)
        writer.write_notes(["Later."])
    reader = Reader(open_logdir(tmp_path))
    assert reader.run(ctx, "", "run").crash == crash
    assert reader.run(ctx, "", "run", [Kind.PEAKS]).crashed
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - set_back)
    with RunWriter(tmp_path / "run") as writer:
        writer.write_peaks(sample_peaks(steps=6))
    later = Reader(open_logdir(tmp_path)).run(ctx, "", "run")
    assert (later.crash, later.crashed) == (None, False)


def test_natural_order():
    names = ["run10", "run9", "run", "Run2", "run9/x", "10", "9", "run09", "²"]
    assert sorted(names, key=natural) == ["9", "10", "Run2", "run", "run09", "run9", "run9/x", "run10", "²"]


def test_everything_of_a_run(tmp_path, open_logdir, ctx):
    late, early = sample_profile(started_at="2026_02"), sample_profile(started_at="2026_01")
    with RunWriter(tmp_path / "run") as writer:
        writer.write_profile(late)
        writer.write_peaks(sample_peaks("GPU:10"))
        writer.write_peaks(sample_peaks("GPU:9"))
        writer.write_estimate(sample_estimate())
        writer.write_profile(early)
        writer.write_notes(["a", "b"])
    run = Reader(open_logdir(tmp_path)).run(ctx, "", "run")
    assert run.name == "run"
    assert run.estimate == sample_estimate()
    assert run.peaks == [sample_peaks("GPU:9"), sample_peaks("GPU:10")]
    assert run.profiles == [early, late]
    assert run.notes == ("a", "b")
    assert run.problems == []


def test_the_last_record_of_a_tag_wins(tmp_path, open_logdir, ctx):
    for steps in range(1, 4):
        with RunWriter(tmp_path) as writer:
            writer.write_peaks(sample_peaks(steps=steps))
            writer.write_notes([str(steps)])
    run = Reader(open_logdir(tmp_path)).run(ctx, "", ".")
    assert (run.peaks, run.notes) == ([sample_peaks(steps=3)], ("3",))


def test_runs_in_natural_order_and_only_those_with_records(tmp_path, open_logdir, ctx):
    for name in ["run10", "run9", "."]:
        with RunWriter(tmp_path / name) as writer:
            writer.write_notes([name])
    write_raw(tmp_path / "direct", "notes", content("notes"), string_tensor(b"x"))
    (tmp_path / "empty").mkdir()
    reader = Reader(open_logdir(tmp_path))
    assert list(reader.listing(ctx, "")) == [".", "direct", "run9", "run10"]
    with pytest.raises(errors.NotFoundError, match=r"no run 'empty' holds .*: '\.', 'direct', 'run9', 'run10'"):
        reader.run(ctx, "", "empty")


def test_a_run_began_when_it_was_estimated_however_long_it_is_measured():
    def listed(kind: Kind, wall_time: float) -> Listed:
        return Listed("a/memest", tag_for(kind), 0, wall_time, content(str(kind)))

    def began(*records: Listed) -> float | None:
        return Reader(None).read(None, "", "a", records, kinds=()).began

    assert began(listed(Kind.PEAKS, 9.0), listed(Kind.HEADLINE, 3.5), listed(Kind.NOTES, 1.0)) == 3.5
    assert began(listed(Kind.PEAKS, 9.0), listed(Kind.NOTES, 1.0)) == 1.0
    assert began() is None


def test_each_record_is_read_once(tmp_path, open_logdir, ctx):
    with RunWriter(tmp_path / "run") as writer:
        writer.write_estimate(sample_estimate())
        writer.write_profile(sample_profile())
    provider = Counted(open_logdir(tmp_path))
    reader = Reader(provider)
    reader.run(ctx, "", "run", {Kind.ESTIMATE})
    assert provider.reads == [("run/memest", "estimate")]
    first = reader.run(ctx, "", "run")
    again = reader.run(ctx, "", "run")
    assert len(provider.reads) == 2
    assert again.estimate is first.estimate
    assert again.profiles[0] is first.profiles[0]


def test_a_newer_record_is_read_though_an_older_one_was(tmp_path, open_logdir, ctx):
    writer = RunWriter(tmp_path / "run")
    writer.write_estimate(sample_estimate())
    provider = open_logdir(tmp_path)
    reader = Reader(provider)
    assert reader.run(ctx, "", "run").estimate == sample_estimate()
    writer.write_estimate(sample_estimate(batch_size=2))
    provider._multiplexer.Reload()
    assert reader.run(ctx, "", "run").estimate == sample_estimate(batch_size=2)
    writer.close()


@pytest.mark.parametrize(
    ("about", "tensor", "sentence"),
    [
        (b"", string_tensor(b"x"), "The record 'estimate' could not be read. Its metadata is b'', which is not"),
        (content("estimate", FORMAT + 1), string_tensor(b"x"), f"has format {FORMAT + 1}; this memest reads up to"),
        (content("dreams"), string_tensor(b"x"), "Its kind is 'dreams'"),
        (content("estimate"), string_tensor(b"junk"), "Its 4 bytes are no estimate that memest wrote"),
        (content("estimate"), string_tensor(zlib.compress(b"{")), "could not be read. Expecting property name"),
        (
            content("estimate"),
            string_tensor(zlib.compress(b'{"format": 99}')),
            "This estimate has format 99; this memest reads up to 1. Upgrade memest",
        ),
        (content("estimate"), string_tensor(b"x", b"y"), "It is a tensor of object with shape (2,), not one string."),
    ],
)
def test_what_cannot_be_read_is_a_sentence_beside_the_rest(tmp_path, open_logdir, ctx, about, tensor, sentence):
    with RunWriter(tmp_path / "run") as writer:
        writer.write_notes(["fine"])
        write_raw(tmp_path / "run" / "memest", "estimate", about, tensor)
    with RunWriter(tmp_path / "other") as writer:
        writer.write_estimate(sample_estimate())
    reader = Reader(open_logdir(tmp_path))
    for _ in range(2):
        run = reader.run(ctx, "", "run")
        assert (run.estimate, run.notes) == (None, ("fine",))
        (problem,) = run.problems
        assert sentence in problem
        assert reader.run(ctx, "", "other").estimate == sample_estimate()
        assert reader.run(ctx, "", "other").problems == []


def test_a_record_that_is_listed_but_not_given(tmp_path, open_logdir, ctx):
    with RunWriter(tmp_path / "run") as writer:
        writer.write_notes(["x"])
    provider = Counted(open_logdir(tmp_path))
    provider.read_tensors = lambda *args, **kwargs: {}
    (problem,) = Reader(provider).run(ctx, "", "run").problems
    assert problem == "The record 'notes' could not be read. TensorBoard lists it but does not give it."


def test_a_provider_without_tensors(ctx):
    provider = Counted(None)
    provider.list_tensors = lambda *args, **kwargs: None
    assert Reader(provider).listing(ctx, "") == {}
