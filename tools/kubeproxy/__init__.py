"""The kube-proxy of a fault test.

* `program`: kube-proxy itself, built once from the Go module that go.mod and go.sum pin.
"""
