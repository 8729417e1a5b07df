"""The metrics of the provider's parts; `platform.runtime.metrics` has those of every process.

* `labs`, `nodes`, `sessions`, `kubelet`, `tunnels`: by the part that counts.
"""
