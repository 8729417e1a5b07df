"""HTTP to one API server: bytes in, bytes out, every failure one of `api.errors`.

* `transport`: one request or stream with credentials: reloads them after a 401, splits streams into lines.
* `pool`: idle connections, at most as many as are in use together; `connection`: one HTTP/1.1 connection over asyncio.
* `auth`: which API server, with which credentials; `kubeconfig`: reads and merges kubeconfigs as client-go does.
* `answers`: turns refusals, ERROR events and broken connections into errors.

Nothing here knows what a resource is; nothing here imports the rest of `vkprovider.kube`.
"""
