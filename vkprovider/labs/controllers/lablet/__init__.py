"""Pod → lab: one key per Pod UID, one step after another.

* `index`: the lablets that this replica knows, by Pod UID and by worker, and the record of each.
* `reconciler`: Pod → lab, by Pod UID.
* `gather`: the facts about one lablet, gathered from what this replica has in memory, and its variables, resolved.
* `effects`: the side effects of a lablet's steps: one short coroutine each, which returns an outcome and changes no
  memory.
* `publish`: publishes what is decided about a lablet: its Pod's status, Events, and counts of its states.
* `passes`: the periodic pass over lablets, their sessions and claims; and new content for warm pools.
* `recovery`: rebuilds the claims of a worker whose ConfigMap was lost, from the labs on it.
* `ports`: the ports of lablets: whether they open, the EndpointSlices that lend them, and labs that claim the same.
* `archive`: what learners leave behind, in ConfigMaps; old ones are deleted.
* `exports`: a lab as a file, on any replica: reading needs no ownership, so no client is redirected to the owner.
"""
