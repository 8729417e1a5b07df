"""The Kubernetes shell: all communication with an API server, and no decisions.

* `client`: verbs over one connection pool; raw JSON bytes in and out; every failure becomes one of `api.errors`. Below
  it: the package `http` (credentials, connections, streams of lines, errors), `flow` (which request goes next),
  `window` (how many are in flight) and `pace` (rate limit).
* `resources`: typed handles: get, list, create, replace, patch, delete; `api`: one handle per kind that we use.
* `informer`: a typed cache of one collection, kept up to date by list and watch; `store` is the cache with its
  handlers, `watch` decodes lists and watch lines.
* `queue`: runs a reconciler per key: serial for one key, parallel across keys; `due`: which of the keys that are due
  comes first; `pauses`: how long a key waits for its next run.
* `events`: records Events in the background; `event` is one of them.

Rules: objects cross this package as bytes or as slim structs of `vkprovider.api`, never as models of a client library;
only `http.auth` may import `kubernetes_asyncio`, and only for kubeconfigs that it cannot read itself (the import costs
40 MB). Nothing here knows lablets, workers or CML.
"""
