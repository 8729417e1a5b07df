"""A CML worker as a Kubernetes Node.

* `node`: the Node of a CMLWorker: what it should report, and the patches that bring it there.
* `endpoint`: where a Node's kubelet API is served, and which version it claims.
* `capacity`: the capacity of a worker, and the image definitions that its Node shows.
* `identity`: whether two CMLWorkers are one CML controller, which would open the same ports for the labs of both.
* `reach`: the way to a worker: where it leads, whether others could read on it, and whether learners reach two at one
  address.
* `secrets`: what a Secret may be used for: its label names the purpose, an annotation the hosts that a password may be
  sent to.
* `leftlab`: what is said of a lab on a worker that no claim names, and how it is removed.
* `registration`: what it means for the CMLWorkers that an agent has presented itself.
"""
