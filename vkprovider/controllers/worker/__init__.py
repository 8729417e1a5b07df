"""CMLWorker → Node, and what all lablets of a worker share.

* `reconciler`: take a worker, probe it, hand it over; `worker`: what is known of one; `fleet`: of all that we act for.
* `opening`, `credentials`: connect to CML with the Secret of the worker.
* `observer`: one bulk observation for all lablets; `labfinder`: find a lab by mark and title.
* `nodes`: write the Node; `status`: write the CMLWorker's status; `slots`: limit the turns that await one worker.
"""
