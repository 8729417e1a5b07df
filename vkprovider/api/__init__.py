"""Vocabulary: pure data, which every other package may import. Nothing here decides, does I/O, or knows the clock.

* `names`: labels, annotations, and how names are derived; `errors`: every error, by what its caller should do.
* `reasons`: every reason with its remedy, a package; `messages`: a reason with its message.
* `models`: the custom resources, a package.
* `objects`: slim structs of Kubernetes objects; `slimming`: what is kept of a Pod; `packing`: text in a ConfigMap.
* `environment`: slim structs of a Pod's environment variables; `exposure`: the EndpointSlice of an exposed lablet.
* `labs`: observations of labs, in CML's words; `agents`: what an agent says of itself; `usage`: what a worker uses.
* `quantities`, `times`, `histogram`: Kubernetes quantities and times, and a histogram in plain numbers.
* `wording`: words of messages, singular and plural; `selectors`: label selectors.
"""
