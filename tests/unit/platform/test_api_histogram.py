"""A histogram in plain numbers."""

from vkprovider.platform.histogram import Histogram


def test_values_are_counted_up_to_each_bound() -> None:
    histogram = Histogram((1.0, 10.0))
    for value in (0.5, 1.0, 1.1, 99.0):
        histogram.observe(value)
    assert histogram.buckets() == [("1.0", 2), ("10.0", 3), ("+Inf", 4)]
    assert (histogram.count, histogram.sum) == (4, 101.6)
