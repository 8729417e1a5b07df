"""Replicas: `lease` judges Leases by observed change, `plan` assigns keys to replicas."""
