"""Settings of the provider.

* `cluster`: settings of the provider: workers, ports, lablets, consoles, the kubelet API; and all of one replica.
* `services`: settings of content packages, the LDS, the grader, the HTTP page and the log.
"""
