"""Replicas: `lease` judges Leases by observed change, `plan` assigns nodes to replicas."""
