"""The control plane of a sandbox: etcd, kube-apiserver, kube-scheduler and kube-controller-manager, stock.

* `build`: where the programs are; compile them once from the Go module in `go/`. `download`: take official ones
  instead, by `fetch`, which resumes files over HTTPS. `kept`: the cache of both, safe for two at once; `versions`:
  those that are pinned, and those that programs say.
* `components`: the command line of each program; `pki`, `kubeconfig`: their certificates and credentials.
* `waiting`: wait until they answer; `kubectl`: run the kubectl that belongs to them.
* `content`: what a sandbox applies: manifests, Secrets, CMLWorkers.
* `programs`: the command lines of the simulators and of the provider's replicas; `tunnels`: of broker and agents;
  `relay`: of a relay and its HAProxy; `muxes`: of a mux with all that serves it; `portal`: of the portal.
"""
