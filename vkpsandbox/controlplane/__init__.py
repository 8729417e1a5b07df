"""The control plane of a sandbox: etcd, kube-apiserver, kube-scheduler and kube-controller-manager, stock.

* `build`: compile the programs once from the Go module in `go/`, and cache them.
* `components`: the command line of each program; `pki`, `kubeconfig`: their certificates and credentials.
* `waiting`: wait until they answer; `kubectl`: run the kubectl that belongs to them.
* `content`: what a sandbox applies: manifests, Secrets, CMLWorkers.
* `programs`: the command lines of the simulators and of the provider's replicas; `tunnels`: of broker and agents;
  `relay`: of a relay and its HAProxy; `muxes`: of a mux with all that serves it; `portal`: of the portal.
"""
