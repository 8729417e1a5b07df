"""What every process needs that acts under a fence; nothing here knows labs or workers.

* `context`: what every controller needs: the API server, clocks, which replica; and how a process reaches them.
* `membership`: which replicas live, whether this one may still act, and whether it leads.
* `members`: the Leases of replicas as the watch shows them: which count as gone, and how one that is gone is ended.
* `home`: which namespace the cluster's installation is in: a replica of another one does nothing.
* `ownership`: which keys of one kind this replica owns: Nodes, say; a process may own keys of several kinds.
* `leases`: leases that say which replica acts for which key, one kind of keys at a time: read, taken, renewed,
  released.
* `planning`: which replica should own which key, planned again whenever a replica, a Lease or a key changes.
* `parts`: a part of a process, and what a process says of its parts: `GET /health`, `GET /admin/state`.
* `process`: a process that acts under a fence: its parts, every loop by name, when it is ready, and how it ends.
* `process_metrics`: the metrics of every process: whether it is ready, its queues, watches, requests, Events and
  memory.
* `loops`: run endless loops beside each other, so that none ends unnoticed.
* `metrics`: metrics for Prometheus: how each is declared, and the counts of one process, read at every scrape.
"""
