"""A mux: one Service with a load balancer, to which many others, its channels, lend their ports and backends.

A channel is a Service whose `loadBalancerClass` names a mux, or a lablet with its ports: a virtual channel.

* `muxnames`: words of muxes on the wire: annotations and labels, whose prefix is a setting, and the reasons of Events.
* `facts`: muxes and channels as they were found: which Service is a mux, and which mux a channel names.
* `requests`: the outside ports that a channel asks for, and the limits of a mux: annotations that people write.
* `state`: what a mux remembers: which channel has which outside port, and UDP ports that drain.
* `endpoints`: the backends of a mux: those of channels and lablets, those that have ended, and addresses that are none.
* `ledger`: the ports of one mux while a pass decides: whose each is, also where the store knows nothing.
* `decide`: the decision of one pass: which channel of a mux has which outside port, and which are refused, with the
  reason.
* `slices`: what carries the backends of a mux: EndpointSlices, or one object of the kind Endpoints.
"""
