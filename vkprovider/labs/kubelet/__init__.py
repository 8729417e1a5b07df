"""The kubelet API of the Nodes: `kubectl logs`, `attach`, `exec`, `port-forward` and `top` on lablets.

* `listeners`: one port for each Node that is ours; `tls`: their certificate and the authorities of clients.
* `certificate`: requests the certificate of the cluster; `signing`: such a request; `authorities`: follows who may sign
  those of clients.
* `callers`: who calls, and whether they may; `server`: the application, in a kubelet's words.
* `pods`: the Pods of a Node, and the small paths. `usage`: what its devices use.
* `logs`: logs of containers; `sources`: of which there are two kinds; `story`: that of a lablet.
* `consoles`: exec, attach and port-forward; `sessions`: which are open, and what remains of them.
* `spi`: what a session is to those who serve it, and what the kubelet API needs of lablets.
* `wire`: bytes and what they mean. Pure. `streams`: sessions over a client's connection.

What the devices do is behind `spi.Devices`, which `labs.controllers.console` implements; nothing here decides.
"""
