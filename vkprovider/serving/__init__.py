"""What every server of a replica shares: its page and the kubelet API of its Nodes.

* `access`: authentication and authorization by the cluster: TokenReview, SubjectAccessReview, with caches and lanes.
* `answers`: refusals, each kind a class with its remedy; bearer tokens.
* `connections`: limits on connections and heads of requests.
* `contexts`: TLS contexts; `selfsigned`: a certificate that a replica makes itself.
"""
