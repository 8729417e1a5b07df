"""Cisco Modeling Labs workers as Kubernetes nodes, labs as pods.

The packages, top to bottom; each imports only what stands below it:

* `cli`: commands.
* `agent`: the agent beside a worker that the cluster cannot dial; `mux`: the program that serves muxes;
  `portal`: the program that gives learners a lab on request; `relay`: what keeps an HAProxy as a mux wants it.
* `app`: the settings from the environment, and the wiring of one replica; `doctor`: the checks of `vkprovider doctor`.
* `web`: the HTTP page of a replica; `kubelet`: the kubelet API of its Nodes; `classroom`: what is done with the lablets
  of a class, on a command line or by the portal.
* `controllers`: reconcilers, one package per noun.
* `runtime`: what every process needs that acts under a fence.
* `serving`: what every server of a process shares.
* `kube`, `cml`, `lds`, `content`, `broker`: one shell per outside system; `rest`: the client below those of HTTP
  services.
* `domain`: decisions, pure functions of (state, facts, now).
* `settings`: every setting, declared once.
* `api`: vocabulary, pure data; `concurrency`: work on many things, a few at a time; the signals that end a process.

`shipped` finds the files that are installed with the package. The transports are the library `tunnels`.
"""

__version__ = "0.2.0.dev0"
