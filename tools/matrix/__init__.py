"""Older versions of Kubernetes that the cluster tests run on, by `make matrix`; `programs` builds them."""
