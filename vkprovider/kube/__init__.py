"""The Kubernetes shell: everything that speaks to an API server, and nothing that decides.

* `client`: one connection pool to one API server; raw JSON bytes in and out; foreign errors become our tree.
  Below it `transport`, `pool` and `http` (requests on connections), `auth` and `kubeconfig` (who we are), `answers`
  (errors), `pace` (how fast).
* `resources`: typed handles: get, list, create, replace, patch, delete; `api`: one handle per kind that we use.
* `informer`: a typed copy of one collection that follows the API server; `watch` decodes what it hears.
* `queue`: runs a reconciler per key: serial for one key, parallel across keys, with back-off.
* `events`: Events for people, written beside the real work and never in its way.

Rules: objects cross this package as bytes or as slim structs of `vkprovider.api`, never as models of a client library;
only `auth` may import `kubernetes_asyncio`, and only for kubeconfigs it cannot read itself (the import costs 40 MB).
Nothing here knows lablets, workers or CML. `controllers`, `app`, `sandbox` and `cli` may import it.
"""
