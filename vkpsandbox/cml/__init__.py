"""A simulator of the CML (Cisco Modeling Labs) 2.9 controller: what tests, the demo and benchmarks run against.

It judges vkprovider, so it imports nothing of it; its own judge is Cisco's client, `virl2-client`.

* `world`: labs in time, pure; `routes`: one module of handlers per part of the API, pure: they see only a `calls.Call`.
* `consoles`: serial consoles and the ports of PATty, which really open.
* `simulation`: the whole, with `accounts`; `errors`: the one table of codes and texts, and which of them no primary
  source confirms.
* `server`, `endpoint`: the shell and the way of a request; `admin`: what tests do at run time, under `/sim`.
* `convergence`: which answer showed a lab as converged first, for the access log.

The way in is `async with CmlSimulator(Settings(password="…")) as sim: sim.url`, of `server` and `simulation`.
"""
