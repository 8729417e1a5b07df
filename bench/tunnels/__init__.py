"""Tunnels beside the direct way, without a cluster.

* `run`: the benchmark; `ways`: the ways to one simulated worker; `chorus`: many agents in one process.
"""
