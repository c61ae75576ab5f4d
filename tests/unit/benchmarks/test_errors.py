import pytest

from benchmarks.errors import distance, percentile, spread, summary


@pytest.mark.parametrize(
    ("predicted", "expected"), [(100, 0.0), (150, 0.0), (200, 0.0), (90, -0.1), (220, 0.1), (50, -0.5)]
)
def test_an_error_is_the_distance_from_the_nearer_end(predicted, expected):
    assert distance(predicted, [200, 100, 130]) == pytest.approx(expected)


def test_a_spread_is_relative_to_the_lowest():
    assert spread([120, 100, 110]) == pytest.approx(0.2)
    assert spread([7]) == 0


def test_percentiles_are_values_that_occurred():
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.95) == 95
    assert percentile(values, 1) == 100
    assert percentile([3.0], 0.95) == 3


def test_a_summary_leaves_signs_out():
    found = summary([-0.4, 0.1, 0.2])
    assert (found.median, found.p95, found.worst, found.count) == (0.2, 0.4, 0.4, 3)
