"""What anyone but the provider may know of a lablet: pure data and functions that every program may import.

* `names`: labels, annotations, taints, conditions, and how names are derived; `reasons`: what can be wrong, and what to
  do about it.
* `models`: the custom resources; `slimming`: what is kept of a Pod in memory.
* `inputs`: the annotations by which users direct a lablet, and its image; `message`: what an instructor tells its
  learner.
* `lifecycle`: its states; `story`: its story as lines; `standings`, `words`: how it stands, in plain words.
* `tags`, `template`, `mappings`, `visibility`: its ports, from the tag of a device to an outside number; `devices`: its
  devices as people see them; `exposure`: the EndpointSlice by which it lends ports to a mux.
* `labs`: observations of labs, in CML's words; `usage`: what a worker has and uses.
"""
