"""SPDY/3.1, which API servers before Kubernetes 1.36 and older kubectls speak to kubelets.

It goes when Kubernetes 1.35 does: this folder, and what `streams` imports of it. Newer API servers send WebSockets.

* `frames`: frames of SPDY/3.1, as far as kubectl and the API server use them. Pure.
* `session`: the streams of one connection, and the pairs of them that are connections of a port-forward session. Pure.
* `streams`: the streams of a connection, over that of aiohttp.
"""
