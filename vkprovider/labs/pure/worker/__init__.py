"""A CML worker as a Kubernetes Node.

* `node`: builds and repairs labels, taints, addresses and conditions.
* `endpoint`: where its kubelet API is served; `kubeletversion`: the version of a kubelet that it claims.
* `capacity`: what the worker offers to lablets; `images`: its image definitions.
* `identity`: whether two CMLWorkers are one CML controller; `reach`: whether learners reach two at one port.
* `secrets`: what a Secret may be used for; `transport`: the way to a worker, and whether it is safe.
* `leftlab`: what is said of a lab on it that no claim names.
* `registration`: what an agent's hello means for the CMLWorkers.
"""
