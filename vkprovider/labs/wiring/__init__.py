"""The composition root of the provider: its parts, wired, and its HTTP page.

* `main`: the process of one replica of the provider: connect, listen, run, stop.
* `base`: what the parts of the provider share: what is followed, the queues, and tables that an admin may give in
  files.
* `provider`: the process of the provider: its list of parts, each built from the base and from the parts before it.
* `parts`: the parts of the provider: each function builds one from the base and from what it uses of other parts.
* `metrics`: the metrics of the provider: labs, Nodes, sessions, tunnels, the kubelet API.
* `kubelet`: the kubelet API of a replica: its parts, wired.
* `tunnels`: the carriers of a replica, one for each tunnel that the settings configure.

It is the only place that knows all packages of the provider.
"""
