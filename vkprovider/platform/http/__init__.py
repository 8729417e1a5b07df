"""What every server shares: the page of a process, and the kubelet API of Nodes.

* `page`: the HTTP page of a process: probes and metrics for everyone, and the routes of its parts.
* `access`: authentication and authorization by the cluster: TokenReview and SubjectAccessReview, as in stock
  components.
* `answers`: refusals, each kind a class, and bearer tokens.
* `bodies`: the gate for bodies: every body that a server of ours reads comes through `read` or `read_form`.
* `client`: one request to a server that is no API server: with a deadline, through the proxy of the environment, no
  redirects.
* `connections`: limits on the connections of a server: how many there are, and how long one may wait for a reader.
* `open`: what is open at a replica, such as streams and consoles: how much, and for how long those who opened it still
  may.
* `origin`: whether a request comes from a page of the site itself, and where a visitor may be sent: pure rules.
* `served`: what every answer of our pages has: security headers, and a line in the log.
* `sse`: server-sent events: an open stream to one client, and an event as it is sent.
* `tls`: TLS of servers: certificate and key from files, read again when they change, or made by the replica itself.
"""
