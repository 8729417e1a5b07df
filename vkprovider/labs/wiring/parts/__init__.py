"""The parts of the provider: each function builds one from the base and from what it uses of other parts.

* `definitions`: LabletDefinition → content, RuntimeClass; `nodes`: CMLWorker → Node; `labs`: Pod → lab; `sessions`: the
  Lab Delivery System.
* `kubelet`: the kubelet API of our Nodes; `tunnels`: agents beside workers.
* `changes`: which change adds which key to which queue; `admin`: what the replica reports to people.
"""
