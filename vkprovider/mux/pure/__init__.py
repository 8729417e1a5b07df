"""A mux: one Service with a load balancer, to which many others, its channels, lend their ports and backends.

A channel is a Service whose `loadBalancerClass` names a mux, or a lablet with its ports: a virtual channel.

* `muxnames`: annotations and labels; `reasons`: what is said in Events.
* `facts`: muxes and channels as they were found.
* `refs`: which Service is a mux, which mux a channel names, and whether the mux serves its namespace.
* `requests`: the outside ports that a channel asks for, and the limits of a mux.
* `state`: which channel has which outside port, and which numbers rest; the ConfigMap of a mux.
* `lablets`: lablets as channels, from their EndpointSlices.
* `owners`: whose a port is, where the store knows nothing; which requests contradict the owners.
* `ledger`: who has which port while a pass decides.
* `draining`: UDP ports that nobody serves, and that stay so that open flows end.
* `decide`: the decision of one pass.
* `endpoints`: the backends of a mux, under the names that the ports have there; `slices`: what carries them.
* `ended`: backends that nobody lends any more, where nothing can be decided.
* `addresses`: addresses that are no backends.
* `text`: what people read on a mux and its channels.
"""
