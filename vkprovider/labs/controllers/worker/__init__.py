"""CMLWorker → Node, and what all lablets of a worker share.

* `reconciler`: CMLWorker → Node: whose node it is, its claims, its connection, and when it is observed.
* `worker`: what this replica knows of one worker whose Node it owns, and the workers that it acts for.
* `connection`: the connections to a worker: by the way that its CMLWorker names; those of others only read.
* `tunnels`: the tunnels of a replica, the agents at them, and CMLWorkers for agents that present themselves.
* `observer`: one bulk observation of a worker for all of its lablets: its labs, the states of their devices, and its
  address.
* `lab_index`: which lablet a lab belongs to, by mark, notes and title, for labs that no claim names.
* `node_writer`: the Node, its Lease and the status of a CMLWorker, written when they differ.
* `status`: the status of a CMLWorker, and the Warnings about it: each is written when it changes, and only then.
* `finalizer`: the finalizer of one CMLWorker: it cannot go as long as it has claims, for they are what its labs are
  deleted by.
"""
