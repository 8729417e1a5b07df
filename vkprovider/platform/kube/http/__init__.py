"""HTTP to one API server: bytes in, bytes out, every failure one of `platform.errors`.

* `transport`: one request or stream with credentials over aiohttp: reloads them after a 401, splits streams into lines.
* `auth`: which API server, with which credentials: a `ClusterAccess` of `credentials`, from the ServiceAccount of a Pod
  or a kubeconfig. By a kubeconfig `login` logs in, with what a `Configuration` of `kubernetes_asyncio` says; before its
  loaders, `kubeconfig` mends what differs from kubectl, and `plugin` runs login plugins.
* `websockets`: a connection with messages both ways, such as a session of `exec`.
* `answers`: turns refusals and ERROR events into errors; `failures` turns those of aiohttp.

Nothing here knows what a resource is; nothing here imports the rest of `vkprovider.platform.kube`.
"""
