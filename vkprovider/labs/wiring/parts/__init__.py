"""The parts of the provider: each function builds one from the base and from what it uses of other parts.

* `definitions`: the part of definitions: LabletDefinition → content and RuntimeClass, with downloads of content
  packages.
* `nodes`: the parts of Nodes and of tunnels: CMLWorker → Node, which replica owns it, and the agents beside workers.
* `labs`: the part of labs: Pod → lab, the checks of its ports, what is left of it, and its downloads.
* `sessions`: the part of sessions: what the Lab Delivery System reports, and what lablets ask of it.
* `kubelet`: the part of the kubelet API: its servers, and the devices that its sessions reach.
* `changes`: what wakes what: which change adds which key to which queue.
* `admin`: the part of administration: what a replica is, what it counts, and a pass that a person asks for.
"""
