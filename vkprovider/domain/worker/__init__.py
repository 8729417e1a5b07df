"""A CML worker as a Kubernetes Node: `node` builds and repairs its labels, taints, capacity and conditions."""
