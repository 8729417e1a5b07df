"""The program that serves muxes: it gives outside ports to channels, and leads them to the channels' backends.

* `pure`: what is decided: which channel has which outside port, and where it leads.
* `service`: what is read and kept of a Service.
* `index`: which Service is a mux, which are its channels, and whose the EndpointSlices are.
* `informers`: what is followed.
* `backends`: the backends of channels, and the Pods that vouch for suspicious ones.
* `reconciler`: one pass over a mux; `memory`: the last passes; `effects`: what they write, a package.
* `showing`: what muxes show, apart from passes.
* `strays`: what belongs to no mux; `events`: Events, once each.
* `leases`: which replica serves which mux.
* `debug`: the debug page; `relay`: what keeps an HAProxy as a mux wants it; `checks`: what the doctor looks at.
* `settings`: its settings.
* `parts`: the parts of the process; `process`: connect, listen, run, stop.
"""
