"""What the provider decides: pure functions of (state, facts, now).

No I/O, no clock, no randomness, no logging: `now` and jitter are arguments, effects are returned as values. Everything
here can be tested without a loop, a cluster or a sleep, and most of the provider's tests do just that.

One package per noun; each imports only what stands below it in this list:

* `lablet`: the next step of one Pod's lab, and the Pod's status.
* `definition`: LabletDefinitions: their content, packages and versions.
* `worker`: the Node of a CML worker; `console`: how devices talk at their consoles, and which port leads where.
* `topology`: what a lab consists of: devices, links, resources.
* `claims`: which lablet has which lab, ports and session.
* `session`: sessions of the Lab Delivery System.
* `conditions`: conditions as Kubernetes stores them.
"""
