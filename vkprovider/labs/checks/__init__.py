"""What the doctor looks at of the provider. Checks are functions of what was read, without I/O, but for two modules.

* `workers`: CMLWorkers, their Secrets and Nodes; `asking`: reads a worker's Secret and probes it.
* `tunnels`: the broker, and workers behind agents; `agents`: probes workers through their agents.
* `lablets`: LabletDefinitions and Pods; `classroom`: the namespace of a class; `kubelet`: the kubelet API.
* `conditions`: what the provider reports on a custom resource or a Node.
"""
