"""The kubelet API of the Nodes: `kubectl logs`, `attach`, `exec`, `port-forward` and `top` on lablets.

* `listeners`: one listener for each Node that is ours: a port that tells which Node a request is for.
* `tls`: TLS of the kubelet API: its certificate, and the authorities that sign those of clients.
* `certificate`: the serving certificate: requested of the cluster's signer, and renewed.
* `callers`: who calls the kubelet API, and what the cluster lets them do: as a kubelet finds out
  (pkg/kubelet/server/auth.go).
* `server`: the application behind all listeners: who may, what answers, and the small paths.
* `usage`: `/metrics/resource`, `/stats/summary` and `/metrics`: what devices use, as metrics-server and Prometheus read
  it.
* `logs`: `/containerLogs`: the log of a device, or the story of a lablet, as `kubectl logs` reads it.
* `story`: where the log of a container comes from: a console, or the lablet's story from the API server.
* `consoles`: `/exec`, `/attach` and `/portForward`: sessions, how many are open, and who has them.
* `spi`: the seams of the kubelet API: sessions as a client asks for them, and the lablets that serve them.
* `wire`: bytes of the kubelet API's streams, and what they mean: no I/O, no clock.
* `streams`: sessions over the connections of aiohttp: thin shells between `wire` and those who serve a session.
* `spdy`: SPDY/3.1, which API servers before Kubernetes 1.36 and older kubectls speak to kubelets.

What the devices do is behind `spi.Devices`, which `labs.controllers.console` implements; nothing here decides.
"""
