"""Decisions: pure functions of (state, facts, now).

No I/O, no clock, no randomness, no logging: `now` and jitter are arguments, effects are returned as values. Everything
here can be tested without a loop, a cluster or a sleep, and most of vkprovider's tests do just that.

One package per noun; each imports only what stands below it in this list:

* `classroom`: a class as its instructor sees it: rows, lists of learners, and what is asked of many.
* `view`: what people see of a lablet, on a command line or in a browser.
* `userlab`: labs that users ask for: the next step of each, its record, and the menu.
* `lablet`: the next step of one Pod's lab, and the Pod's status.
* `definition`: LabletDefinitions: their content, packages and versions.
* `worker`: the Node of a CML worker.
* `console`: how devices talk at their consoles, and which port leads where.
* `mux`: which Service has which port of a load balancer that many Services share.
* `topology`: what a lab consists of: devices, port tags, resources.
* `claims`: which lablet has which lab, ports and session.
* `session`: sessions of the Lab Delivery System.
* `replica`: which replica acts for which node.
* `ports`: port numbers, and the ConfigMap in which their owners are stored.
* `backoff`, `conditions`: shared by all of them.
"""
