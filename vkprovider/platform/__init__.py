"""How a program of ours lives beside an API server; nothing here knows labs.

* `wellknown`: the API group, Kubernetes' own labels, and those of a replica.
"""
