"""The Kubernetes shell: all communication with an API server, and no decisions.

* `client`: the Kubernetes API as verbs over raw JSON bytes.
* `http`: HTTP to one API server: bytes in, bytes out, every failure one of `platform.errors`.
* `flow`: in which order requests go to the API server, how many at once, and how fast.
* `resources`: typed handles for Kubernetes resources, so that no caller holds a URL, a decoder or a paging loop.
* `api`: the kinds of resources that our programs work with.
* `access`: what the API server says of users: whose a token is, and what somebody may do.
* `clock`: the API server's clock, learned from the `Date` of its answers.
* `informer`: a typed cache of one collection, kept up to date by list and watch.
* `watch`: decode lists and watch lines in one pass, and keep the collection with its handlers.
* `queue`: run a reconciler per key: serial for one key, parallel across keys, with delays and back-off.
* `due`: which keys of a queue are due, by priority, and how long each waits for its next run.
* `events`: record Events in the background, as client-go's broadcaster does.

Three libraries, each for what it is best at: `kubernetes_asyncio` reads kubeconfigs: only `http.login` and
`http.kubeconfig` import it, where there is one, and its `Configuration` ends there. aiohttp carries the bytes, as to
CML: a request costs 195 µs, where the library's own `ApiClient.call_api` costs 830. msgspec decodes them into slim
structs of `platform.objects`, fifty times as fast as models of a client library, which never cross this package.

Nothing here knows lablets, workers or CML.
"""
