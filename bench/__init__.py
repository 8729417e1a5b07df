"""Benchmarks: the cost of the bridge, measured from outside. `make bench [ONLY=name]`.

* `throughput`, `main_job`, `idle`, `ports`, `growth`, `mux`, `page`, `portal`: a benchmark each; `updown`: scale a
  Deployment up and down again.
* `versus`: beside KWOK; `tunnels`: beside the direct way; `kubelet`: the kubelet API beside what it is made of;
  `relay`: HAProxy, filled from a mux, beside socat.
* `inpod`: run a program as a Pod does; `outside`: measure processes and the API server; `controlplane`: the settings
  that differ from stock.
* `figures`: figures, aims and their table; `stages`: where the time of a Pod goes.
"""
