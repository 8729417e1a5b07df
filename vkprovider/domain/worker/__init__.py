"""A CML worker as a Kubernetes Node.

* `node`: builds and repairs labels, taints, addresses and conditions.
* `capacity`: what the worker offers to lablets.
* `identity`: whether two CMLWorkers are one CML controller.
* `secrets`: what a Secret may be used for; `transport`: whether what is sent to a worker is safe on the way.
"""
