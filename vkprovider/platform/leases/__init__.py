"""Who lives, and who owns what: pure functions of Leases and times.

* `lease`: what Leases say, judged without trust in anybody's clock; `plan`: which replica should own which key.
"""
