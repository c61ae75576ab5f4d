"""Rows of nested layers summed up."""

from __future__ import annotations

from tensorboard_plugin_memest.plugin.layer_tree import groups


def row(path: str, weights: int, measured: int | None = None, class_name: str = "Dense") -> dict:
    return {
        "path": path,
        "class_name": class_name,
        "output_shape": [1],
        "parameters": weights // 4,
        "bytes_per_category": {"weights": weights} if weights else {},
        "bytes_at_peak": weights,
        "measured_bytes": measured,
        "difference_bytes": None if measured is None else measured - weights,
    }


def test_a_group_has_all_that_lies_below_it_and_its_own():
    rows = [
        row("head", 4),
        row("encoder", 0, class_name="Functional"),
        row("encoder/block/attention/query", 40),
        row("encoder/block/attention", 100),
        row("encoder/block/up", 3_000_000_000),
        row("encoder_2", 7),
        row("(step)/rest", 8, class_name=""),
    ]
    found = groups(rows)
    assert [(group["path"], group["layers"], group["bytes_at_peak"]) for group in found] == [
        ("encoder", 4, 3_000_000_140),
        ("encoder/block", 3, 3_000_000_140),
        ("encoder/block/attention", 2, 140),
        ("(step)", 0, 8),
    ]
    assert found[0]["bytes_per_category"] == {"weights": 3_000_000_140}
    assert found[2]["parameters"] == 35
    assert found[0]["measured_bytes"] is found[0]["difference_bytes"] is None


def test_measured_bytes_and_differences_are_summed_where_there_are_any():
    (group,) = groups([row("a/b", 10, 14), row("a/c", 10, 0)])
    assert (group["measured_bytes"], group["difference_bytes"]) == (14, -6)


def test_no_group_without_nesting():
    assert groups([row("a", 1), row("b", 2)]) == []
