"""A simulator of the CML (Cisco Modeling Labs) 2.9 controller: what tests, the demo and benchmarks run against.

Tests judge vkprovider by it, so it imports nothing of vkprovider; Cisco's `virl2-client` judges the simulator.

* `world`: labs in time, pure; `routes`: one module of handlers per part of the API, pure: they see only a `calls.Call`.
* `packets`: what a capture of a link sees. Pure.
* `consoles`: serial consoles and the ports of PATty, which really open.
* `simulation`: a whole controller, with `accounts`; `errors`: the table of codes and texts, and
  which of them no primary source confirms.
* `server`, `endpoint`: the HTTP shell; `admin`: orders of tests at run time, under `/sim`.
* `convergence`: which answer showed a lab as converged first, for the access log.

Use it as `async with CmlSimulator(Settings(password="…")) as sim: sim.url`, of `server` and `simulation`.
"""
