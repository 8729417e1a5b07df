"""Benchmarks: what the bridge costs, seen from outside. `make bench [ONLY=name]`."""
