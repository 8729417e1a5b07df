"""CMLWorker → Node, and what all lablets of a worker share.

* `reconciler`: take a worker, probe it, hand it over; `worker`: what is known of one; `fleet`: of all that we act for.
* `connection`: connect to CML with the credentials of the worker's Secret.
* `observer`: one bulk observation for all lablets; `lab_index`: find a lab by mark and title.
* `node_writer`: write the Node; `status`: write the CMLWorker's status; `slots`: limit the turns that await it.
"""
