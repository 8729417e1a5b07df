"""The claims of workers, one ConfigMap per worker.

* `store`: the claims of a worker that this replica owns, written in batches; `config_map`: their object.
* `reader`: the claims of all workers, read from the API server.
"""
