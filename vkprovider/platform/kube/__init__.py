"""The Kubernetes shell: all communication with an API server, and no decisions.

* `client`: verbs over one API server; raw JSON bytes in and out; every failure becomes one of `platform.errors`. Below
  it: the package `http` (credentials, requests, streams of lines, errors), `flow` (which request goes next), `window`
      (how many are in flight) and `pace` (rate limit).
* `resources`: typed handles: get, list, create, replace, patch, delete; `api`: one handle per kind that we use.
* `access`: what the user may do.
* `clock`: the API server's, by its answers.
* `informer`: a typed cache of one collection, kept up to date by list and watch; `store` is the cache with its
  handlers, `watch` decodes lists and watch lines.
* `queue`: runs a reconciler per key: serial for one key, parallel across keys; `due`: which of the keys that are due
  comes first; `pauses`: how long a key waits for its next run.
* `events`: records Events in the background; `event` is one of them.

Three libraries, each for what it is best at: `kubernetes_asyncio` reads kubeconfigs: only `http.login` and
`http.kubeconfig` import it, where there is one, and its `Configuration` ends there. aiohttp carries the bytes, as to
CML: a request costs 195 µs, where the library's own `ApiClient.call_api` costs 830. msgspec decodes them into slim
structs of `platform.objects`, fifty times as fast as models of a client library, which never cross this package.

Nothing here knows lablets, workers or CML.
"""
