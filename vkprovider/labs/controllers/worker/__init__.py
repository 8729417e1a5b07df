"""CMLWorker → Node, and what all lablets of a worker share.

* `reconciler`: acquire a worker's Node, observe the worker, hand it over; `worker`: what is known of one; `fleet`: of
  all for which this replica acts.
* `connection`: connect to CML with the credentials of the worker's Secret; `readers`: connections that only read, to
  workers for which other replicas act.
* `tunnels`: connect through agents; `registration`: make CMLWorkers for agents that present themselves.
* `observer`: one bulk observation for all lablets, and when it is due; `lab_index`: find a lab by mark and title.
* `node_writer`: write the Node; `kubernetes`: the version that it claims; `node_leases`: the Leases of Nodes, which
  replicas share out; `status`: write the CMLWorker's status; `finalizer`: keep the CMLWorker as long as it has claims;
  `slots`: limit the turns that await it.
"""
