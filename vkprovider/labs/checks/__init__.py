"""What the doctor looks at of the provider. Checks are functions of what was read, without I/O, but for two modules.

* `workers`: checks of CMLWorkers: what the provider reports on them, their Secrets and Nodes, and the kubelet API.
* `asking`: asks one worker from this machine: its Secret, then version, login, rights, licence, clock.
* `tunnels`: checks of tunnels: the broker as this process reaches it, and how workers answer through their agents.
* `agents`: asks workers through their agents, over the broker of `spec.tunnel: mqtt`.
* `lablets`: checks of LabletDefinitions and of Pods on the provider's Nodes.
* `classroom`: checks of one namespace, of what an instructor can mend there, or can tell an admin.
* `kubelet`: checks of the kubelet API of the Nodes.
"""
