"""The environment variables of a lablet's containers, resolved as a kubelet resolves them.

* `resolve`: the variables of each container of a lablet, from its Pod and from the ConfigMaps and Secrets that were
  read for it.
* `sources`: what the variables of a Pod refer to: ConfigMaps, Secrets, the downward API, and each other.
"""
