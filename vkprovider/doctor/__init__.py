"""How a check reads a cluster, and what it reports; the checks of a program are in its folder.

* `findings`: what a check reports, and the report made of it; `reasons`: findings that no object shows.
* `reading`: reads the cluster; `programs`: the Deployment, Pods, settings and replicas of any program.
* `rights`: what the provider's ServiceAccount needs, and what the roles of users give, read from the shipped manifests.
"""
