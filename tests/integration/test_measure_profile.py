"""Profiles that Keras and TensorFlow write, read in full and held against XProf's own reading of the same files."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tensorboard_plugin_memest.measure.alive import alive_at, find_lives
from tensorboard_plugin_memest.measure.profile import find_steps, read_profile
from tensorboard_plugin_memest.measure.profile_files import log_profile
from tensorboard_plugin_memest.measure.xplane import read_xplane
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item
from tests.integration.processes import EXACT, answer_of
from tests.samples import sample_estimate
from tests.unit.measure.space import Space

# Trains a small model and profiles it: by Keras' TensorBoard callback (batches 3 to 6 of 10), or all of a fit with
# validation. Prints the variables that exist in the end as [path, kind, shape, dtype, bytes].
TRAIN = """
import json, sys
import numpy as np, tensorflow as tf, keras
logdir, by = sys.argv[1:]
tf.config.threading.set_inter_op_parallelism_threads(1)
keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.Input((16, 16, 3)),
    keras.layers.Conv2D(16, 3, activation="relu"),
    keras.layers.Dropout(0.3),
    keras.layers.Flatten(),
    keras.layers.Dense(128, activation="relu"),
    keras.layers.Dense(1),
])
model.compile("adam", "mse", run_eagerly=by == "eagerly")
x, y = np.random.rand(80, 16, 16, 3).astype("float32"), np.random.rand(80, 1).astype("float32")
if by == "callback":
    model.fit(x, y, batch_size=8, verbose=0, callbacks=[keras.callbacks.TensorBoard(logdir, profile_batch=(3, 6))])
else:
    tf.profiler.experimental.start(logdir)
    model.fit(x, y, batch_size=16, epochs=2, validation_split=0.2, verbose=0)
    tf.profiler.experimental.stop()
kinds = [(v, "weight") for v in model.weights]
kinds += [(v, "slot") for v in model.optimizer.variables if len(v.shape)]
print(json.dumps([[v.path, kind, list(v.shape), v.dtype, int(np.prod(v.shape)) * 4] for v, kind in kinds]))
"""

Thing = TypeVar("Thing")
Profiled = Callable[..., tuple[Path, list[list[Any]]]]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory) -> Profiled:
    """Trains once for each way of profiling and gives the profile's file and the model's variables."""
    made: dict[str, tuple[Path, list[list[Any]]]] = {}

    def make(by: str, environment: dict[str, str] = EXACT) -> tuple[Path, list[list[Any]]]:
        key = f"{by} {environment}"
        if key not in made:
            logdir = tmp_path_factory.mktemp("profiled")
            variables = answer_of(TRAIN, str(logdir), by, environment=environment)
            (path,) = logdir.rglob("*.xplane.pb")
            made[key] = path, variables
        return made[key]

    return make


def xprofs(path: Path) -> dict[str, dict[str, Any]]:
    """XProf's memory profile of every allocator in the file."""
    from xprof.convert import raw_to_tool_data

    text, _ = raw_to_tool_data.xspace_to_tool_data([str(path)], "memory_profile", {})
    return json.loads(text)["memoryProfilePerAllocator"]


def xprof(path: Path) -> dict[str, Any]:
    """That of the only one."""
    return only(list(xprofs(path).values()))


def told_by_xprof(profile: dict[str, Any]) -> Counter[tuple[str, int]]:
    """Op and size of what XProf says was allocated in the step of the peak, and is alive at it."""
    found: Counter[tuple[str, int]] = Counter()
    for row in profile["activeAllocations"]:
        if int(row["snapshotIndex"]) >= 0:
            activity = profile["memoryProfileSnapshots"][int(row["snapshotIndex"])]["activityMetadata"]
            key = (activity["tfOpName"].removeprefix("StatefulPartitionedCall/"), int(activity["allocationBytes"]))
            found[key] += int(row["numOccurrences"])
    return found


def address_and_total(snapshot: dict[str, Any]) -> tuple[int, int]:
    return int(snapshot["activityMetadata"]["address"]), int(snapshot["aggregationStats"]["heapAllocatedBytes"])


def first_thread_ns(path: Path) -> int:
    """When the first thread began, since the profile's start: XProf counts time from there."""
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    return min(line.timestamp_ns for plane in space.planes for line in plane.lines)


def only(things: Sequence[Thing]) -> Thing:
    (thing,) = things
    return thing


@pytest.mark.parametrize("by", ["callback", "hand"])
def test_the_peak_and_every_total_are_those_of_xprof(profiled, by):
    path, _ = profiled(by)
    theirs = xprof(path)
    ours = only(read_profile(path))
    assert ours.peak_bytes == int(theirs["profileSummary"]["peakStats"]["peakBytesInUse"])

    events = only(read_xplane(path).memory)
    snapshots = theirs["sampledTimelineSnapshots"]
    shift = first_thread_ns(path)
    ours_at = {
        int(time) - shift: (int(address), int(total))
        for time, address, total in zip(events.time_ns, events.address, events.in_use, strict=True)
    }
    for snapshot in snapshots:
        assert ours_at[int(snapshot["timeOffsetPs"]) // 1000] == address_and_total(snapshot)
    assert ours.timeline.live_bytes == events.in_use.tolist()
    if by == "callback":
        # Few enough for XProf to keep them all.
        assert len(snapshots) == len(ours.timeline) < 1000
    else:
        assert len(snapshots) <= 1000 < len(ours.timeline)


ALLOCATORS = ("GPU_0_bfc", "GPU_1_bfc", "gpu_host_bfc", "cpu_bfc")


def session(path: Path, host: str, seed: int) -> Path:
    """A profile of one host: two steps, four allocators, each with memory from before and chance in what it does."""
    draw = random.Random(seed)
    space = Space(host=host)
    threads = [space.line(f"thread {number}") for number in range(3)]
    live: dict[str, list[tuple[int, int]]] = {name: [] for name in ALLOCATORS}
    in_use = {name: 256 * draw.randrange(100) for name in ALLOCATORS}
    for step in range(2):
        space.event(threads[0], "train", 10_000 * step, 9_000, group_id=step, step_num=step, _r=1)
    for event in range(400):
        name, address = draw.choice(ALLOCATORS), 2**40 + 4096 * event
        frees = bool(live[name]) and draw.random() < 0.4
        size, address = (
            live[name].pop(draw.randrange(len(live[name]))) if frees else (draw.randint(1, 40) * 256, address)
        )
        in_use[name] += -size if frees else size
        if not frees:
            live[name].append((size, address))
        stats = (
            {} if frees else {"tf_op": f"layer/op{event % 17}", "region_type": "output", "shape": "[8]", "data_type": 1}
        )
        space.memory(
            draw.choice(threads), 50 * event, in_use[name], size,
            free=frees, addr=address, allocator_name=name, group_id=event // 200, step_id=event // 200, **stats,
        )  # fmt: skip
    return space.write(path / f"{host}.xplane.pb")


def test_of_several_allocators_and_hosts_each_has_xprof_s_peak_and_what_was_alive(tmp_path):
    where = tmp_path / "plugins" / "profile" / "2026_02_03_04_05_06"
    paths = {host: session(where, host, seed) for seed, host in enumerate(("one", "two"))}
    logged = log_profile(tmp_path, tmp_path)
    assert {(one.host, one.allocator) for one in logged} == {(host, name) for host in paths for name in ALLOCATORS}
    checked = 0
    for ours in logged:
        path = paths[ours.host]
        theirs = xprofs(path)[ours.allocator]
        assert ours.peak_bytes == int(theirs["profileSummary"]["peakStats"]["peakBytesInUse"])
        (events,) = (events for events in read_xplane(path).memory if events.allocator == ours.allocator)
        shift = first_thread_ns(path)
        ours_at = {
            int(time) - shift: (int(address), int(total))
            for time, address, total in zip(events.time_ns, events.address, events.in_use, strict=True)
        }
        snapshots = theirs["sampledTimelineSnapshots"]
        assert len(snapshots) == len(events)
        for snapshot in snapshots:
            assert ours_at[int(snapshot["timeOffsetPs"]) // 1000] == address_and_total(snapshot)
        alive = Counter((item.name, item.bytes) for item in ours.live_at_peak)
        assert told_by_xprof(theirs) <= alive
        checked += sum(told_by_xprof(theirs).values())
        assert sum(item.bytes for item in ours.live_at_peak) == ours.peak_bytes
    assert checked > 40


@pytest.mark.parametrize("by", ["callback", "hand", "eagerly"])
def test_each_total_follows_from_the_one_before(profiled, by):
    path, _ = profiled(by)
    events = only(read_xplane(path).memory)
    in_use = only(read_profile(path)).before_bytes
    for allocates, size, after in zip(events.allocates, events.bytes, events.in_use, strict=True):
        in_use += int(size) if allocates else -int(size)
        assert in_use == after


def test_everything_that_lives_at_the_peak_is_told_and_adds_up(profiled):
    path, _ = profiled("callback")
    ours = only(read_profile(path))
    assert sum(item.bytes for item in ours.live_at_peak) == ours.peak_bytes
    theirs = xprof(path)
    # XProf takes another of the moments at which the peak is reached, and tells only what was allocated in its step.
    events = only(read_xplane(path).memory)
    moment = int(theirs["profileSummary"]["peakStatsTimePs"]) // 1000 + first_thread_ns(path)
    (position,) = (index for index, time in enumerate(events.time_ns) if time == moment)
    there = alive_at(position, events, find_lives(events), ours.steps, read_xplane(path).backward_ns, ())
    theirs_at_peak = told_by_xprof(theirs)
    assert theirs_at_peak
    assert theirs_at_peak <= Counter((item.name, item.bytes) for item in there)
    assert sum(item.bytes for item in there) == ours.peak_bytes


def test_what_was_there_before_is_matched_to_the_model_s_variables(profiled):
    path, variables = profiled("callback")
    items = tuple(
        Item(
            layer="(optimizer)" if kind == "slot" else "layer",
            name=name,
            category=Category.OPTIMIZER_SLOTS if kind == "slot" else Category.WEIGHTS,
            role=name.rsplit("_", 1)[-1] if kind == "slot" else "weight",
            variable=None,
            shape=tuple(shape),
            dtype=dtype,
            requested_bytes=size,
            bytes=-(-size // 256) * 256,
        )
        for name, kind, shape, dtype, size in variables
    )
    sample = sample_estimate()
    step = dataclasses.replace(sample.phases["step"], live_at_peak=items)
    ours = only(read_profile(path, dataclasses.replace(sample, phases={"step": step})))
    assert sum(item.bytes for item in ours.before) == ours.before_bytes
    assert sum(item.bytes for item in ours.live_at_peak) == ours.peak_bytes
    found = {item.name for item in ours.before if item.category is not Category.UNATTRIBUTED}
    assert found == {item.name for item in items}
    # The rest is the data set (245 KB) and what the chunks of the three large kernels have more than these, at most as
    # much again.
    (rest,) = (item for item in ours.before if item.category is Category.UNATTRIBUTED)
    assert 245_760 < rest.bytes < 3 * 3136 * 128 * 4 + 10**6
    assert {item.name for item in items} <= {item.name for item in ours.live_at_peak}


def test_a_weight_s_gradient_is_told_by_its_name_and_shape(profiled):
    path, _ = profiled("callback")
    profile = read_xplane(path)
    events = only(profile.memory)
    names = [events.texts[op] for op in events.op]
    position = next(
        i for i, name in enumerate(names) if name.endswith("gradient_tape/sequential_1/dense_1/MatMul/MatMul_1")
    )
    steps = find_steps(profile)
    items = alive_at(position, events, find_lives(events), steps, profile.backward_ns, (), {(3136, 128)})
    told = {item.name: item for item in items}
    gradient = told["gradient_tape/sequential_1/dense_1/MatMul/MatMul_1"]
    assert (gradient.category, gradient.shape, gradient.dtype) == (Category.GRADIENTS, (3136, 128), "float32")
    assert gradient.requested_bytes == 3136 * 128 * 4 <= gradient.bytes
    # Its own input, still needed by the pass that just began.
    assert told["sequential_1/conv2d_1/Relu"].category is Category.ACTIVATIONS


def test_keras_steps_are_the_profiled_batches_and_hold_the_backward_passes(profiled):
    path, _ = profiled("callback")
    ours = only(read_profile(path))
    # Keras counts batches from 1 in profile_batch and from 0 in its markers.
    assert [step.name for step in ours.steps] == ["step 2", "step 3", "step 4", "step 5"]
    for step in ours.steps:
        ops = {
            ours.timeline.op_at(position)
            for position, tick in enumerate(ours.timeline.ticks)
            if step.start <= tick <= step.end
        }
        assert any(op.startswith("gradient_tape/") for op in ops)


def test_without_markers_the_training_steps_are_found_and_validation_is_not_among_them(profiled):
    path, _ = profiled("hand")
    ours = only(read_profile(path))
    # 64 examples in batches of 16, two epochs.
    assert [step.name for step in ours.steps] == [f"step {n}" for n in range(8)]
    functions = read_xplane(path).functions
    training = {f.name for f in functions if (f.start_ns, f.end_ns) in {(s.start, s.end) for s in ours.steps}}
    validation = {f.name for f in functions if "multi_step_on_iterator" in f.name} - training
    assert len(training) == len(validation) == 1


def test_eager_steps_cannot_be_told_without_markers(profiled):
    path, _ = profiled("eagerly")
    assert only(read_profile(path)).steps == ()


def test_without_a_counting_allocator_there_is_nothing_to_tell(profiled):
    path, _ = profiled("callback", {"TF_ENABLE_ONEDNN_OPTS": "0"})
    assert read_profile(path) == []
    assert [step.number for step in read_xplane(path).steps] == [2, 3, 4, 5]
