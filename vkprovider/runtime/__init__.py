"""What every process needs that acts under a fence; nothing here knows labs or workers.

* `context`: what every controller is given: API client, Events, clocks, dice, identity.
* `membership`: this replica's own Lease, those of the others, and the fence.
* `ownership`: take, renew and release keys of one kind, and prove ownership at every side effect; `leases`: a kind of
  keys, and their Leases.
* `planning`: which replica should own which key, and what this one has to do about it.
"""
