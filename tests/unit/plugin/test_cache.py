"""The bounded cache."""

from __future__ import annotations

import threading

import pytest

from tensorboard_plugin_memest.plugin.cache import Cache


def counting(value: str, weight: int = 1):
    made = []

    def make() -> tuple[str, int]:
        made.append(value)
        return value, weight

    return make, made


def test_made_once():
    cache = Cache[str](10)
    make, made = counting("a")
    assert [cache.get("key", make) for _ in range(3)] == ["a"] * 3
    assert made == ["a"]


def test_the_least_recently_used_goes_first():
    cache = Cache[str](3)
    makers = {name: counting(name) for name in "abcd"}
    for name in "abcad":
        assert cache.get(name, makers[name][0]) == name
    for name in "acd":
        cache.get(name, makers[name][0])
    assert {name: len(made) for name, (_, made) in makers.items()} == {"a": 1, "b": 1, "c": 1, "d": 1}
    cache.get("b", makers["b"][0])
    assert len(makers["b"][1]) == 2
    assert len(cache) == 3


def test_weights_count_and_the_newest_stays():
    cache = Cache[str](10)
    cache.get("small", counting("small", 4)[0])
    heavy, made = counting("heavy", 50)
    cache.get("heavy", heavy)
    cache.get("heavy", heavy)
    assert (len(cache), len(made)) == (1, 1)
    cache.get("next", counting("next", 10)[0])
    assert len(cache) == 1, "50 and 10 are too much for 10"
    cache.get("after", counting("after", 1)[0])
    assert len(cache) == 1, "10 and 1 are too much"
    cache.get("more", counting("more", 9)[0])
    assert len(cache) == 2


def test_a_failure_is_not_kept():
    cache = Cache[str](10)

    def fail() -> tuple[str, int]:
        raise KeyError("no")

    with pytest.raises(KeyError):
        cache.get("key", fail)
    assert cache.get("key", counting("a")[0]) == "a"


def test_threads_that_want_the_same_make_it_once():
    cache = Cache[str](10)
    started = threading.Barrier(4)
    make, made = counting("a")

    def want() -> None:
        started.wait()
        assert cache.get("key", make) == "a"

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"]
