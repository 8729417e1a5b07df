"""The program that serves muxes: it gives outside ports to channels, and leads them to the channels' backends.

* `pure`: a mux: one Service with a load balancer, to which many others, its channels, lend their ports and backends.
* `index`: which Service is a mux, which are its channels, and what is kept of each.
* `informers`: what the program follows: Services with load balancers, addresses of all, EndpointSlices, and the CML
  workers.
* `backends`: the backends of channels, as EndpointSlices have them, and the Pods that vouch for suspicious addresses.
* `reconciler`: one pass over a mux: read what is there, decide, write what is to be remembered, then what differs.
* `memory`: what a replica remembers of the muxes that it serves; none of it decides anything.
* `effects`: what is written for muxes.
* `showing`: what muxes show on their Services: the annotations `channels`, `topology` and `summary`.
* `strays`: what belongs to no mux: marked Services of a wrong type, channels of no mux, and Leases of muxes that are
  gone.
* `events`: events about muxes and channels: each once, and again before the API server forgets it.
* `process`: the process of one replica that serves muxes: its Leases and parts; connect, listen, run, stop.
* `debug`: the debug page of muxes: what a replica knows of them.
* `relay`: keeps HAProxy's maps equal to the EndpointSlices of one mux: `vkprovider relay`.
* `checks`: what the doctor looks at of muxes: their Services, what lends them ports, and their relays.
* `settings`: settings of muxes and of the relay; their names are those of the program that came before.
"""
