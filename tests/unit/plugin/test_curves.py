"""Curves as answers."""

from __future__ import annotations

from tensorboard_plugin_memest.memory.timeline import Timeline
from tensorboard_plugin_memest.memory.whose import Whose
from tensorboard_plugin_memest.plugin.curves import Wanted, timeline_view


def test_timeline_is_thinned_and_says_how_long_it_was():
    levels = [n % 7 for n in range(5000)]
    levels[4001] = 2**41 + 1
    timeline = Timeline("op", list(range(5000)), levels, [0] * 5000, ["op"])
    answer = timeline_view(timeline, Wanted(100), {"op": Whose("dense")})
    assert (answer["events"], answer["extent"]) == (5000, [0, 4999])
    assert answer["peak"] == {"position": 4001, "tick": 4001, "live_bytes": 2**41 + 1, "op": "op"}
    assert answer["timeline"]["ticks"][answer["timeline"]["live_bytes"].index(2**41 + 1)] == 4001
    assert 50 < len(answer["timeline"]["ticks"]) <= 100
    assert answer["timeline"]["layers"] == ["dense"]
    assert [levels[position] for position in answer["timeline"]["positions"]] == answer["timeline"]["live_bytes"]
    assert timeline_view(Timeline("op", [], [], [], []), Wanted(4), {})["peak"] is None
