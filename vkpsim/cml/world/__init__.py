"""Labs in time: pure code, the time is an argument.

* `model`: labs, nodes, interfaces, links; `states`, `rules`: their states and the table of operations.
* `world`: all labs, advanced in time; `boots`, `wires`, `host`: boot times, link conditions, the machine below.
* `topology`: cml.yaml in and out; `editing`: changes to a lab's topology; `definitions`: node and image definitions,
  with `platforms`, those that CML ships, and `definition_json`, their JSON; `drawing`: what is drawn beside a topology.
* `events`: the event log of a lab.
"""
