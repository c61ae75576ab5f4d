"""Decoding of profile files written by hand with TensorFlow's own schema."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tensorboard_plugin_memest.measure.profile import read_profile
from tensorboard_plugin_memest.measure.xplane import ProfileError, read_xplane
from tests.unit.measure.space import EPOCH_NS, Space


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "plugins" / "profile" / "2026_02_03_04_05_06" / "machine.xplane.pb"


def test_columns_hold_every_statistic_in_the_order_of_time(path):
    space = Space()
    one, two = space.line("tf_Compute/1", 500), space.line("tf_data/2", 500)
    space.memory(one, 30, 768, 256, tf_op="dense/MatMul", region_type="output", data_type=1, shape="[8,4]")
    space.memory(two, 20, 512, 512, tf_op="GatherV2", region_type="temp", data_type=9, shape="[]")
    space.memory(one, 40, 256, 512, free=True, data_type=0)
    profile = read_xplane(space.write(path))
    (events,) = profile.memory
    assert (profile.host, profile.started_at) == ("worker", "2026_02_03_04_05_06")
    assert events.allocator == "bfc"
    assert events.time_ns.tolist() == [520, 530, 540]
    assert events.allocates.tolist() == [True, True, False]
    assert events.bytes.tolist() == [512, 256, 512]
    assert events.requested_bytes.tolist() == [511, 255, 511]
    assert events.in_use.tolist() == [512, 768, 256]
    assert events.address.tolist() == [2**46 + 512, 2**46 + 256, 2**46 + 512]
    assert events.dtype.tolist() == [9, 1, 0]
    assert [events.texts[i] for i in events.op] == ["GatherV2", "dense/MatMul", ""]
    assert [events.texts[i] for i in events.region] == ["temp", "output", ""]
    assert [events.texts[i] for i in events.shape] == ["[]", "[8,4]", ""]
    assert [events.texts[i] for i in events.thread] == ["tf_data/2", "tf_Compute/1", "tf_Compute/1"]


def test_each_allocator_has_its_own_events(path):
    space = Space()
    line = space.line("a")
    space.memory(line, 1, 256, 256, allocator_name="gpu_host_bfc")
    space.memory(line, 2, 512, 512, allocator_name="GPU_0_bfc")
    space.memory(line, 3, 0, 512, free=True, allocator_name="GPU_0_bfc")
    told = {events.allocator: events.in_use.tolist() for events in read_xplane(space.write(path)).memory}
    assert told == {"gpu_host_bfc": [256], "GPU_0_bfc": [512, 0]}


def test_times_of_day_become_times_since_the_start(path):
    space = Space()
    space.memory(space.line("a", EPOCH_NS + 7000), 5, 256, 256)
    assert read_xplane(space.write(path)).memory[0].time_ns.tolist() == [7005]


def test_an_op_whose_name_is_a_number_keeps_it(path):
    space = Space()
    space.memory(space.line("a"), 1, 256, 256, tf_op=123)
    (events,) = read_xplane(space.write(path)).memory
    assert events.texts[events.op[0]] == "123"


def test_markers_functions_and_backward_ops_are_found_by_their_times(path):
    space = Space()
    line = space.line("python", 100)
    space.event(line, "Profiled batch", 50, 20, step_num=4)
    space.event(line, "Profiled batch", 10, 20, step_num=0)
    space.event(line, "EagerLocalExecute: __inference_train_7", 12, 10)
    space.event(line, "EagerLocalExecute: Mul", 13, 1)
    space.event(line, "StatefulPartitionedCall/gradient_tape/dense/MatMul:MatMul", 15, 1)
    space.event(line, "StatefulPartitionedCall/dense/MatMul:MatMul", 14, 1)
    profile = read_xplane(space.write(path))
    assert [(s.name, s.number, s.start_ns, s.end_ns) for s in profile.steps] == [
        ("Profiled batch", 0, 110, 130),
        ("Profiled batch", 4, 150, 170),
    ]
    assert [(f.name, f.start_ns, f.end_ns) for f in profile.functions] == [("train_7", 112, 122)]
    assert profile.backward_ns.tolist() == [115]


def test_planes_of_devices_are_not_taken_for_the_host(path):
    space = Space(plane="/device:GPU:0")
    space.event(space.line("Steps"), "7", 1, 5, step_num=7)
    assert read_xplane(space.write(path)).steps == []


def test_a_host_without_a_name_is_called_as_its_file(path):
    space = Space(host="")
    assert read_xplane(space.write(path)).host == "machine"


def test_what_is_no_profile_is_refused_with_its_path(path, tmp_path):
    text = tmp_path / "text.xplane.pb"
    text.write_text("this is no protocol buffer")
    with pytest.raises(ProfileError, match=r"text\.xplane\.pb is not a complete profile"):
        read_xplane(text)


def test_a_half_written_profile_is_refused(path):
    space = Space()
    line = space.line("a")
    for n in range(100):
        space.memory(line, n, 256 * n, 256)
    space.write(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ProfileError, match="not a complete profile"):
        read_xplane(path)
    path.write_bytes(b"")
    with pytest.raises(ProfileError, match="holds nothing"):
        read_xplane(path)


def test_a_profile_cut_anywhere_is_refused_or_tells_the_beginning_of_what_it_told(path):
    space = Space()
    line = space.line("a")
    for n in range(1, 9):
        space.memory(line, n, 256 * n, 256, tf_op="dense/MatMul", region_type="output", shape="[8,4]")
    whole = space.write(path).read_bytes()
    told = [256 * n for n in range(1, 9)]
    refused = 0
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        try:
            profile = read_xplane(path)
        except ProfileError:
            refused += 1
            continue
        for events in profile.memory:
            assert events.in_use.tolist() == told[: len(events)]
    # The few that are left are cut between two of its parts.
    assert refused > len(whole) - 10


def test_of_many_events_none_is_left_out(path):
    count = 100_000
    draw = random.Random(0)
    space = Space()
    lines = [space.line(f"tf_Compute/{n}") for n in range(4)]
    in_use, highest, live = 10**6, 0, []
    for n in range(count):
        if live and draw.random() < 0.5:
            size, address = live.pop(draw.randrange(len(live)))
            in_use -= size
            space.memory(draw.choice(lines), n, in_use, size, free=True, addr=address, data_type=0)
        else:
            size, address = 256 * draw.randint(1, 4000), 2**46 + n
            live.append((size, address))
            in_use += size
            space.memory(
                draw.choice(lines), n, in_use, size, addr=address, tf_op=f"StatefulPartitionedCall/op{n % 999}",
                region_type="output", data_type=1, shape="[8,4]"
            )  # fmt: skip
        highest = max(highest, in_use)
    space.write(path)
    (profile,) = read_profile(path)
    assert len(profile.timeline) == count
    assert profile.peak_bytes == highest
    assert profile.before_bytes == 10**6
    assert sum(item.bytes for item in profile.live_at_peak) == highest
    assert np.all(np.diff(profile.timeline.ticks) >= 0)
