"""HTTP to one API server: bytes in, bytes out, every failure one of `platform.errors`.

* `transport`: requests to one API server: credentials, one retry after a 401, and streams split into lines.
* `auth`: which API server, with which credentials: those of a kubeconfig or of the Pod's ServiceAccount.
* `credentials`: how to reach an API server, and the parts of that which a kubeconfig and a ServiceAccount have in
  common.
* `login`: log in by a kubeconfig: `kubernetes_asyncio` fills a `Configuration`, which `ClusterAccess` is made of.
* `kubeconfig`: mends a kubeconfig before `kubernetes_asyncio` reads it, and runs its login plugins as client-go does.
* `websockets`: a WebSocket through the API server, such as a session of `exec`: binary messages, and what it says of a
  refusal.
* `answers`: map an API server's refusals, and what aiohttp raises where there is no answer, to
  `vkprovider.platform.errors`.

Nothing here knows what a resource is; nothing here imports the rest of `vkprovider.platform.kube`.
"""
