"""What every process needs that acts under a fence; nothing here knows labs or workers.

* `context`: what every controller is given: API client, Events, clocks, dice, identity; `connecting`: how a process
  reaches the API server, and learns which installation it belongs to.
* `membership`: this replica's own Lease, the fence, and which replica leads; `members`: the Leases of all replicas.
* `home`: which namespace the cluster's installation is in; a replica of another one is no member.
* `ownership`: take, renew and release keys of one kind, and prove ownership at every side effect; `leases`: a kind of
  keys, and their Leases.
* `planning`: which replica should own which key, and what this one has to do about it.
* `parts`: a part of a process, as a record; `process`: the parts, run together: every loop by name, readiness, the end.
* `loops`: run loops beside each other; `report`: health and counts; `metrics`: what is counted.
"""
