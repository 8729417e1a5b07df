"""The environment variables of a lablet's containers, resolved as a kubelet resolves them.

* `resolve`: the variables of each container, from the Pod and from what was read for it.
* `sources`: the ConfigMaps and Secrets that a Pod refers to, and what came of reading one.
* `expansion`: `$(NAME)` in the value of a variable; `downward`: fields of the Pod and resources of its containers.
"""
