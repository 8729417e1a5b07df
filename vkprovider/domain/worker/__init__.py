"""A CML worker as a Kubernetes Node.

* `node`: builds and repairs labels, taints, addresses and conditions.
* `capacity`: what the worker offers to lablets.
* `secrets`: what a Secret may be used for.
"""
