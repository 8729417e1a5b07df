"""The metrics of a replica.

* `measures`: every metric, in a table; `measure`: how one is declared; `readings`: the readers of their samples.
* `exposition`: what Prometheus reads.
"""
