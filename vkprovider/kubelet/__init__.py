"""The kubelet API of the Nodes: `kubectl logs`, `attach`, `exec`, `port-forward` and `top` on lablets.

* `spi`: what a session is to those who serve it, and what the kubelet API needs of lablets.
* `wire`: bytes and what they mean. Pure. `streams`: sessions over a client's connection.

What the devices do is behind `spi.Devices`, which `controllers.console` implements; nothing here decides.
"""
