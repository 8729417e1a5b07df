"""What every process needs that acts under a fence; nothing here knows labs or workers.

* `context`: what every controller is given: API client, Events, clocks, dice, identity.
* `membership`: this replica's own Lease, those of the others, and the fence.
* `ownership`: take, renew and release nodes, and prove ownership at every side effect; `leases`: the Leases of Nodes.
* `planning`: which replica should own which Node, and what this one has to do about it.
"""
