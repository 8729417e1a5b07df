"""What is written for muxes.

* `writes`: every write passes here: it is carried out once, or only logged.
* `store`: the ConfigMap of a mux.
* `carriers`: what carries its backends: EndpointSlices, or Endpoints.
* `reports`: what channels and muxes show; `answers`: what exposed lablets are answered.
* `leaving`: the end of a mux.
"""
