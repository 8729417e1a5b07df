"""`vkprovider doctor`: what is wrong with a cluster and its workers, one finding per fault.

* `gather`: decides what is read and who is asked, and passes it to the checks.
* `reading`: reads the cluster; `asking`: reads a worker's Secret and probes it; `agents`: probes workers through their
  agents. With `gather`, all I/O.
* `findings`: what a check reports, and the report made of it.
* `conditions`: what the provider reports on a custom resource or a Node.
* `rights`: what the provider's ServiceAccount needs, and what the roles of users give, read from the shipped manifests.
* `setup`: checks of the installation: custom resource definitions, namespace, rights, replicas.
* `workers`: checks of CMLWorkers, their Secrets and Nodes.
* `kubelet`: checks of the kubelet API.
* `muxes`: checks of the muxes to which ports of lablets are lent, and of their relays.
* `tunnels`: checks of the broker, and of workers behind agents.
* `lablets`: checks of LabletDefinitions and Pods; `workloads`: of what makes Pods of lablets.
* `classroom`: checks of the namespace of a class; `instructor` reads what they need, with an instructor's rights.

Checks are functions of what was read, without I/O.
"""
