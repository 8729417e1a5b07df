"""What is written for muxes.

* `store`: every write for muxes, guarded; and the ConfigMap of a mux, read with each pass, written before all else.
* `carriers`: the objects that carry the backends of a mux: its EndpointSlices, or its Endpoints.
* `reports`: what channels, muxes and lablets are shown of a pass: annotations.
* `leaving`: the end of a mux: its backends go, its channels show nothing of it, and then its Service is released.
"""
