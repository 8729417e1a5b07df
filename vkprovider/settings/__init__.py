"""The settings of a replica: one frozen group per subject, declared once and passed as it is to what uses it.

* `group`: the base class of all groups.
* `cluster`: the replica, the API server, workers, ports, lablets.
* `consoles`: consoles through kubectl.
* `services`: content packages, the LDS, the grader, the HTTP page, the log.
* `names`: variables that look like settings and that nobody reads. Pure.
* `plaintext`: which of these services are reached by http://. Pure.
* `kubelet`: the kubelet API of the Nodes.
* `relay`: the relay, and its HAProxy.
* `portrange`: ranges of ports, and how they are checked. Pure.
* `rereading`: what the files hold that settings name, when they are replaced.
* `mux`: muxes, and the page about them.
* `portal`: user labs, and the portal that makes them.
* `tunnels`: the tunnels to workers; `agent`: the agent at their other end.

`vkprovider.app.settings` reads all groups from the environment. A field with an alias is an environment variable; the
others are constants that tests shorten.
"""
