"""Older versions of Kubernetes that the cluster tests run on: `make matrix`."""
