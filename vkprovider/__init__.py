"""Cisco Modeling Labs workers as Kubernetes nodes, labs as pods.

Four programs, each in one folder, none of which imports another:

* `labs`: the provider: CML workers as Nodes, labs as Pods; `agent`: the agent beside a worker that the cluster cannot
  dial.
* `mux`: one address for many Services, with the relay that fills an HAProxy.
* `portal`: a lab on request, in a browser or by an API.

Above them `cli`, the commands, and `prepull`, what ordinary Nodes hold and pull, in the words of the portal's menu.
Below them what they share, top to bottom; each imports only what stands below it:

* `classroom`: what is done with the lablets of a class, on a command line or by the portal; `doctor`: how a check reads
  a cluster, and what it reports.
* `cml`: the shell of a CML worker; `carriers`: how agents and replicas find each other.
* `rest`: the client of HTTP services.
* `lablet`: what anyone but the provider may know of a lablet. Pure.
* `platform`: how a program of ours lives beside an API server.

The transports are the library `tunnels`.
"""

__version__ = "0.2.0.dev0"
