"""Cisco Modeling Labs workers as Kubernetes nodes, labs as pods.

The packages, top to bottom; each imports only what stands below it:

* `cli`: commands.
* `app`: settings and wiring; `sim`: the CML simulator; `sandbox`: a real control plane on one machine.
* `controllers`: reconcilers, one per noun.
* `kube`, `cml` and the library `tunnels`: one shell per outside system.
* `domain`: decisions, pure functions of (state, facts, now).
* `api`: vocabulary, pure data.
"""

__version__ = "0.1.0"
