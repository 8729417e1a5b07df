"""A simulator of the CML (Cisco Modeling Labs) 2.9 controller: what tests, the demo and benchmarks run against.

It judges the rest of vkprovider, so it imports nothing of it; its own judge is Cisco's client, `virl2-client`.

* Pure, time comes in as an argument: `states` and `rules` (the operation table), `model`, `world` (labs in time), with
  `host`, `boots`, `wires` and `events`; `editing` and `topology`; `definitions`, `console`, `accounts`; `simulation` is
  the whole, `views` draws its JSON.
* Handlers, pure too, as they see only a `calls.Call`: `routes_*`. `errors` is the one table of codes and texts, and
  says which of them no primary source confirms.
* The shell: `server`, `endpoint` (the way of a request), `admin` (what tests do at run time, under `/sim`),
  `consoles`, `patty` (ports that really open).
* The shell of any simulator, shared with that of the Lab Delivery System in `lds`: `simulator`, `listener`, `gate`
  (what requests pass first), `faults`, `access_log`, `orders` (what any simulator can be ordered to do), `store` (the
  state file), `tls`.

The way in is `async with CmlSimulator(Settings(password="…")) as sim: sim.url`, of `server` and `simulation`.
"""
