"""Benchmarks: the cost of the bridge, measured from outside. `make bench [ONLY=name]`.

* `throughput`, `main_job`, `idle`, `ports`, `growth`: a benchmark each; `updown`: scale a Deployment up and down again.
* `versus`: beside KWOK; `tunnels`: beside the direct way; `kubelet`: the kubelet API beside what it is made of;
  `relay`: HAProxy, filled from a mux, beside socat.
* `outside`: measure processes and the API server; `controlplane`: the settings that differ from stock.
* `figures`: figures, aims and their table; `stages`: where the time of a Pod goes.
"""
