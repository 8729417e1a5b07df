"""What every server shares: the page of a process, and the kubelet API of Nodes.

* `page`: the HTTP page of a process: probes, metrics, and what its parts mount.
* `access`: authentication and authorization by the cluster: TokenReview, SubjectAccessReview, with caches and lanes.
* `answers`: refusals, each kind a class with its remedy; bearer tokens.
* `bodies`: the gate for bodies, and forms.
* `connections`: limits on connections and heads of requests.
* `sse`: streams of server-sent events.
* `tls`: a certificate that can be renewed while a page is served; `contexts`: TLS contexts; `selfsigned`: a
  certificate that a replica makes itself.
"""
