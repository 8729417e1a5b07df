"""Benchmarks: the cost of the bridge, measured from outside. `make bench [ONLY=name]`."""
